#pragma once
// Options that several commands that replay a recording have in common.

#include <string>
#include <vector>

#include "cli/parsing/command_parser.h"

namespace citcat {

/// --unchecked
void define_unchecked(const CommandParser& parser, bool& unchecked);
/// --from-start
void define_from_start(const CommandParser& parser, bool& from_start);
/// --hints
void define_hints(const CommandParser& parser, std::string& hints);
/// --symbols
void define_symbols(const CommandParser& parser, std::vector<std::string>& symbols);

}  // namespace citcat
