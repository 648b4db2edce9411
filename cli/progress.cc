#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "formats/text/printable_text.h"

namespace citcat {
namespace {

/// Short work finishes before its line would appear.
constexpr std::chrono::milliseconds kFirstDraw{500};
constexpr std::chrono::milliseconds kRedraw{100};

/// Three or four significant digits with a unit prefix: 950, 12.3k, 4.56G.
std::string short_count(double value) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (value >= 1000 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.{}f}{}", value, prefix == 0 ? 0 : 1, kPrefixes[prefix]);
}

/// "34 %, 12 s left", or nothing where the total is not known.
std::string remaining_text(const ProgressState& state) {
  if (state.total == 0 || state.done == 0 || state.done > state.total) return "";
  const double fraction = static_cast<double>(state.done) / static_cast<double>(state.total);
  return fmt::format("{:.0f} %, {:.0f} s left", 100 * fraction,
                     state.seconds * (1 - fraction) / fraction);
}

/// What can be said of `state`, the fullest first.
std::vector<std::string> progress_texts(const ProgressState& state) {
  const double amount = static_cast<double>(state.done);
  const std::string count = short_count(amount);
  const std::string left = remaining_text(state);
  const std::string tail = left.empty() ? "" : ", " + left;
  if (!state.what.empty()) {
    const std::string counted = state.done == 0 ? "" : ": " + count;
    const std::string time = fmt::format(", {:.0f} s", state.seconds);
    return {fmt::format("{}: {}{}{}{}", state.label, state.what, counted, time, tail),
            fmt::format("{}: {}{}{}", state.label, state.what, counted, time),
            fmt::format("{}{}{}", state.what, counted, time)};
  }
  const std::string speed =
      state.seconds > 0 ? fmt::format(", {}/s", short_count(amount / state.seconds)) : "";
  return {fmt::format("{}: {} {}{}{}", state.label, count, state.unit, speed, tail),
          fmt::format("{}: {} {}{}", state.label, count, state.unit, tail),
          fmt::format("{}: {}", state.label, left.empty() ? count : left)};
}

/// "Erase to the end of the line" (ECMA-48, EL).
constexpr const char* kEraseLine = "\x1b[K";

}  // namespace

std::string progress_line(const ProgressState& state, unsigned columns) {
  std::string line;
  for (std::string& text : progress_texts(state)) {
    line = std::move(text);
    if (line.size() <= columns) return line;
  }
  line.resize(columns);
  return line;
}

Progress::Progress(bool visible, std::string label, std::string unit, std::uint64_t total)
    : visible_(visible),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      start_(Clock::now()),
      next_draw_(start_ + kFirstDraw) {}

Progress::~Progress() {
  if (drawn_) std::fputs(("\r" + std::string(kEraseLine)).c_str(), stderr);
}

void Progress::update(std::uint64_t done) {
  check_interrupt();
  show(done);
}

void Progress::show(std::uint64_t done, std::string_view what) {
  if (!visible_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + kRedraw;
  draw(done, what, now);
}

void Progress::draw(std::uint64_t done, std::string_view what, Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // A line that fills the last column makes some terminals go on in the next one.
  const std::string line = progress_line({label_, unit_, what, done, total_, seconds},
                                         terminal_columns(STDERR_FILENO) - 1);
  std::fputs(("\r" + printable_text(line) + kEraseLine).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace citcat
