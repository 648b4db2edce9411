#pragma once
// Names of places in memory, as a linker or a kernel lists them.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "events/machine/address.h"

namespace citcat {

/// Number kept in archives.
enum class SymbolKind : std::uint8_t { code = 0, data = 1 };
/// How far the name is known where it was linked. Number kept in archives; if one place has several
/// names, the first in this order is preferred.
enum class SymbolBinding : std::uint8_t { global = 0, weak = 1, local = 2 };

struct Symbol {
  std::string name;  ///< as in the file, perhaps mangled (demangle.h)
  LinearAddr address;
  std::uint64_t size = 0;  ///< bytes; 0: the file does not say
  SymbolKind kind = SymbolKind::code;
  SymbolBinding binding = SymbolBinding::global;
  bool operator==(const Symbol&) const = default;
};

/// The symbols of one program, library, kernel or kernel module.
struct SymbolModule {
  std::string name;             ///< "vmlinux", "ext4", "sort"
  std::string process;          ///< only this process has the module; empty: every process has it
  std::vector<Symbol> symbols;  ///< as settle_symbols() leaves them
  bool operator==(const SymbolModule&) const = default;
};

/// Longest name of a symbol, module or process that is read. C++ and Rust make names of thousands
/// of bytes.
inline constexpr std::size_t kMaxSymbolName = std::size_t{1} << 14;
/// Most symbols of one module: some twenty times those of a kernel with all its drivers.
inline constexpr std::size_t kMaxSymbols = std::size_t{1} << 22;

/// The last address that a symbol may have.
inline constexpr std::uint64_t kLastSymbolAddress =
    std::numeric_limits<decltype(LinearAddr::value)>::max();

/// Orders the symbols by address, those of one address by preference: code before data, then by
/// binding, leading underscores, length and name. Removes duplicates.
void settle_symbols(SymbolModule& module);

/// Moves all symbols by so many bytes. Throws UsageError naming `source` where one would lie beyond
/// the last address.
void move_symbols(SymbolModule& module, std::int64_t by, const std::string& source);

}  // namespace citcat
