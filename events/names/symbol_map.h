#pragma once

#include <string>
#include <vector>

#include "events/names/symbol_module.h"
#include "formats/io/line_reader.h"

namespace citcat {

/// Reads names as Linux lists them, in System.map and /proc/kallsyms (proc(5), kallsyms), and as
/// nm(1) prints them: lines of an address, a letter for the kind, a name and perhaps a module in
/// brackets. The names without a module make the module `name`, and come first. Absolute values and
/// undefined names, which are not places in memory, are left out.
///
/// Throws FormatError with the line for anything else; also if all addresses are zero, because the
/// kernel hides them from users, and if no code has a name.
std::vector<SymbolModule> read_symbol_map(LineReader& lines, const std::string& name);

}  // namespace citcat
