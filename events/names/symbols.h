#pragma once
// Finds the name of what lies at an address, and the addresses of names.
//
// Several modules may have names for one address: the program of the process that runs, and the
// kernel. Symbols of the process come first. In one module, the innermost symbol with a known size
// counts. A symbol without a size extends to the next symbol of its module, or after the last one
// to the end of its page, but never into or beyond a symbol with a size.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "events/names/symbol_module.h"

namespace citcat {

/// Where an address lies. The pointers are valid as long as the Symbols they came from.
struct SymbolPlace {
  const SymbolModule* module = nullptr;
  const Symbol* symbol = nullptr;
  std::uint64_t offset = 0;  ///< from the symbol's first byte
};
/// "schedule", "schedule+0x1c"; names demangled.
std::string place_name(const SymbolPlace& place);

/// The bytes of a symbol, at least one. The pointers as in SymbolPlace.
struct SymbolRange {
  const SymbolModule* module = nullptr;
  const Symbol* symbol = nullptr;
  LinearAddr first, last;
};

/// Immutable once made, and so safe to ask from several threads.
class Symbols {
 public:
  Symbols() = default;
  explicit Symbols(std::vector<SymbolModule> modules);
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  Symbols(Symbols&&) = default;
  Symbols& operator=(Symbols&&) = default;

  bool empty() const { return modules_.empty(); }
  const std::vector<SymbolModule>& modules() const { return modules_; }

  /// What lies at the address while `process` runs; its name may be empty where it is not known.
  std::optional<SymbolPlace> find(LinearAddr at, std::string_view process = {}) const;
  /// The code of all symbols with a name like `procedure`, as it is or demangled, in modules
  /// with a name like `module`: patterns of fnmatch(3), such as a plain name. In the order of
  /// modules and addresses; several names of one place each give a range.
  std::vector<SymbolRange> code(const std::string& module, const std::string& procedure) const;
  /// The first place of that name, code or data; in the order of modules.
  std::optional<SymbolPlace> named(std::string_view name) const;

 private:
  /// From here on up to the next one's begin: the symbol, or kNobody.
  struct Stretch {
    std::uint64_t begin = 0;
    std::size_t symbol = 0;
  };
  static constexpr std::size_t kNobody = ~std::size_t{0};
  using Stretches = std::vector<Stretch>;

  static Stretches stretches_of(const SymbolModule& module);
  std::optional<SymbolPlace> find_in(std::size_t module, LinearAddr at) const;

  std::vector<SymbolModule> modules_;
  std::vector<Stretches> stretches_;  ///< of each module
};

/// The last byte of a module's symbol, as this file's head says where the symbol does not.
std::uint64_t symbol_last(const SymbolModule& module, std::size_t symbol);

}  // namespace citcat
