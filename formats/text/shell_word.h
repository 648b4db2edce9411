#pragma once

#include <string>

namespace citcat {

/// `text` as one word of a shell command: in quotes where a shell could take it for something else.
std::string shell_word(const std::string& text);

}  // namespace citcat
