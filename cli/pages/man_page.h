#pragma once
// The manual pages, made of the definitions of commands and options.

#include <string>
#include <vector>

#include "cli/parsing/command_description.h"

namespace citcat {

/// citcat(1): the commands, and what is common to all of them.
std::string program_page(const std::vector<CommandDescription>& commands);

/// citcat-COMMAND(1).
std::string command_page(const CommandDescription& command);

}  // namespace citcat
