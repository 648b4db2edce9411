#pragma once
// Scripts for the gdb of the system, run by `citcat debug`.

#include <filesystem>
#include <string>
#include <vector>

namespace citcat::testing {

/// What gdb says to the lines of `script` when `citcat debug ARGUMENTS` starts it in the folder
/// `where`, without pauses for a reader. Expects exit status 0.
std::string run_gdb(const std::string& arguments, const std::string& script,
                    const std::filesystem::path& where);
/// What follows `mark` in each line that begins with it.
std::vector<std::string> lines_with(const std::string& text, const std::string& mark);

}  // namespace citcat::testing
