#pragma once
// Names for addresses, kept in a recording that was just made.

#include <string>
#include <vector>

#include "cli/console.h"
#include "events/names/symbol_module.h"

namespace citcat {

/// Adds names for addresses to all recordings of the archive: they are of one machine. A kernel is
/// moved to where the recorded one lay.
void add_symbols(std::vector<SymbolModule> modules, const std::string& archive,
                 const Console& console);

}  // namespace citcat
