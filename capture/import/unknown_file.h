#pragma once
// The message about a file that is in no known capture format.

#include <string>

namespace citcat {

/// The end of a message about a file that detect_capture_format() knows nothing of: "a file of
/// another kind", or for a text table which line and column is not understood.
std::string what_was_found(const std::string& path);

}  // namespace citcat
