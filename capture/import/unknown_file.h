#pragma once
// What is said of a file that no format wants.

#include <string>

namespace citcat {

/// The end of a message about a file that detect_capture_format() knows nothing of: "none of them",
/// or for a text table which line and column is not understood.
std::string what_was_found(const std::string& path);

}  // namespace citcat
