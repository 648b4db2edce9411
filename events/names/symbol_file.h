#pragma once
// Files of symbols as a command line names them.

#include <optional>
#include <string>
#include <vector>

#include "events/names/symbol_module.h"

namespace citcat {

/// What "FILE", "FILE@BASE", "FILE:PROCESS" and "FILE@BASE:PROCESS" mean.
struct SymbolFileName {
  std::string path;
  std::optional<LinearAddr> base;  ///< of ELF: where its first page lay
  std::string process;             ///< in whose memory alone; empty: in that of every one
};
/// If a file has that whole name, the name means this file. BASE is hexadecimal, with or without
/// 0x. Throws UsageError for an invalid base.
SymbolFileName parse_symbol_file_name(const std::string& name);

/// Reads an ELF file, a System.map or a list as /proc/kallsyms has it, perhaps compressed
/// (formats/io/input.h), or a Linux kernel, as a boot loader takes it or stripped, for the names
/// that it carries itself. Names of a kernel make the module "vmlinux" and those of its modules;
/// ELF makes a module of the file's name without folders and what says how it is compressed.
///
/// Throws FormatError for any other file, IoError, and UsageError for a base that is missing or
/// makes no sense.
std::vector<SymbolModule> load_symbol_file(const SymbolFileName& file);
/// The modules of several files, named as parse_symbol_file_name() says.
std::vector<SymbolModule> load_symbols(const std::vector<std::string>& names);

/// The file that has the names of the kernel that a boot loader takes from `kernel`: that file
/// itself, or the System.map that belongs to it and lies beside it, as distributions name the two
/// ("vmlinuz-6.1", "System.map-6.1"). Empty where neither has any, or cannot be read.
std::string find_kernel_symbols(const std::string& kernel);

}  // namespace citcat
