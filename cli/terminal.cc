#include "cli/terminal.h"

#include <fmt/color.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace citcat {
namespace {

fmt::text_style text_style(Style style) {
  switch (style) {
    case Style::error:
    case Style::bad:
      return fmt::emphasis::bold | fmt::fg(fmt::terminal_color::red);
    case Style::warning:
      return fmt::emphasis::bold | fmt::fg(fmt::terminal_color::yellow);
    case Style::good:
      return fmt::emphasis::bold | fmt::fg(fmt::terminal_color::green);
    case Style::title:
      return fmt::emphasis::bold;
  }
  return {};
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool is_terminal(int descriptor) { return isatty(descriptor) == 1; }

bool has_colours(int descriptor) {
  if (!is_terminal(descriptor) || is_set("NO_COLOR")) return false;
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) != "dumb";
}

unsigned terminal_columns(int descriptor) {
  constexpr unsigned kUsual = 80;
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

std::string styled(int descriptor, Style style, std::string_view text) {
  if (!has_colours(descriptor)) return std::string(text);
  return fmt::format(text_style(style), "{}", text);
}

}  // namespace citcat
