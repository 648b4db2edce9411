#pragma once
// Symbols of programs, libraries and kernels in ELF.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/machine/known_code.h"
#include "events/names/symbol_module.h"

namespace citcat {

bool is_elf(std::span<const std::uint8_t> head);

/// It has some table of symbols. Throws FormatError with `source` if it is not an ELF file for an
/// x86 processor.
bool has_symbol_table(std::span<std::uint8_t> image, const std::string& source);

/// The symbols of an x86 program, library or kernel in ELF: those of its whole table, or where that
/// was stripped off, those for the dynamic linker. `base` is where the page lay that the lowest
/// loaded segment begins in, as /proc/PID/maps shows it; it may be absent for what is linked to a
/// fixed place. Sources: System V ABI, "Object Files", and its Intel386 supplement.
///
/// `image` is the whole file; libelf may change it. Throws FormatError with `source` if it is not
/// such a file, or has no symbols; UsageError where `base` is missing, or moves symbols beyond the
/// last address.
std::vector<Symbol> read_elf_symbols(std::span<std::uint8_t> image, const std::string& source,
                                     std::optional<LinearAddr> base);

/// Reads the code of the same file: the bytes of every program header that is loaded and
/// executable, as far as the file holds them. May be empty. Throws likewise.
std::vector<KnownCode> read_elf_code(std::span<std::uint8_t> image, const std::string& source,
                                     std::optional<LinearAddr> base);

}  // namespace citcat
