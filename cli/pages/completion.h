#pragma once
// Completion of the command line in the shells, made of the definitions of commands and options.
// Every script completes commands, the options of the command that was given, the words that an
// option takes, and files where a file is wanted.

#include <string>
#include <vector>

#include "cli/parsing/command_description.h"

namespace citcat {

std::string bash_completion(const std::vector<CommandDescription>& commands);
std::string zsh_completion(const std::vector<CommandDescription>& commands);
std::string fish_completion(const std::vector<CommandDescription>& commands);

}  // namespace citcat
