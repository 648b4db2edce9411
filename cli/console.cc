#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/terminal.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "formats/text/one_line.h"
#include "formats/text/printable_text.h"

namespace citcat {
namespace {

/// `kind` is empty or ends in a blank.
void say(std::string_view kind, std::string_view text) {
  const std::string line = fmt::format("citcat: {}{}\n", kind, printable_text(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

[[noreturn]] void throw_stdout_failed() {
  throw IoError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
}

}  // namespace

void Console::write(std::string_view text) const {
  if (collected_text_ != nullptr) {
    collected_text_->append(text);
  } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw_stdout_failed();
  }
}

void Console::print(std::string_view text) const {
  static const bool for_people = is_terminal(STDOUT_FILENO);
  if (!for_people) return write(text);
  write(printable_text(text, "\n\t"));
}

void Console::print_line(std::string_view line) const { print(one_line(line) + "\n"); }

void Console::print_verdict(bool good, std::string_view verdict, std::string_view rest) const {
  write(styled(STDOUT_FILENO, good ? Style::good : Style::bad, verdict));
  print_line(rest);
}

void Console::print_titles(std::string_view titles) const {
  if (is_terminal(STDOUT_FILENO)) write(styled(STDOUT_FILENO, Style::title, titles) + "\n");
}

void Console::print_json(const nlohmann::ordered_json& value) const {
  if (collected_ != nullptr) {
    collected_->push_back(value);
  } else {
    print(json_text(value) + "\n");
  }
}

void Console::note(std::string_view text) const {
  if (!quiet_) say("", text);
}

void Console::warn(std::string_view text) const {
  say(styled(STDERR_FILENO, Style::warning, "warning:") + " ", text);
}

void Console::error(std::string_view text) const {
  say(styled(STDERR_FILENO, Style::error, "error:") + " ", text);
}

Progress Console::progress(std::string label, std::string unit, std::uint64_t total) const {
  const bool visible = !quiet_ && is_terminal(STDERR_FILENO);
  return Progress(visible, std::move(label), std::move(unit), total);
}

void Console::flush() const {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout.flush()) {
    throw_stdout_failed();
  }
}

}  // namespace citcat
