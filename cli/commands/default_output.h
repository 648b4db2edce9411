#pragma once

#include <string>
#include <string_view>

namespace citcat {

/// The output of a command for which the user named none: in the current folder, named as `input`
/// but with `ending` in place of the endings that captures, recordings and compressed files have.
/// Throws IoError if `input` does not exist, and UsageError if it is not a file or if something has
/// that name already.
std::string default_output(const std::string& input, std::string_view ending);

}  // namespace citcat
