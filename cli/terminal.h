#pragma once
// The abilities of the terminal behind a stream.

#include <string>
#include <string_view>

namespace citcat {

/// The meaning of a word on the terminal, which decides its colour.
enum class Style { error, warning, good, bad, title };

bool is_terminal(int descriptor);

/// Whether `descriptor` is a terminal that is to have colours: NO_COLOR is empty or not set
/// (no-color.org), and TERM is not "dumb".
bool has_colours(int descriptor);

/// Columns of the terminal at `descriptor`; 80 if it is not known.
unsigned terminal_columns(int descriptor);

/// `text` in the colour of `style` where has_colours(descriptor), else as it is.
std::string styled(int descriptor, Style style, std::string_view text);

}  // namespace citcat
