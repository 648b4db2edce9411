#pragma once

#include "cli/console.h"
#include "tools/mdl/parser.h"

namespace citcat {

/// Prints the error in an MDL text, its line, and a caret below the place.
void tell_text_error(const mdl::TextError& error, const Console& console);

}  // namespace citcat
