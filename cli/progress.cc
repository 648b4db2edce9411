#include "cli/progress.h"

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "cli/interrupt.h"

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

}  // namespace

Progress::Progress(bool visible, std::string label, std::string unit, std::uint64_t total)
    : visible_(visible),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      start_(Clock::now()),
      next_draw_(start_ + kFirstDraw) {}

Progress::~Progress() {
  // Carriage return, then "erase to the end of the line" (ECMA-48, EL).
  if (drawn_) std::fputs("\r\x1b[K", stderr);
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
  const double amount = static_cast<double>(done);
  std::string line = "\r" + label_ + ": ";
  line += what.empty() ? fmt::format("{} {}, {}/s", short_count(amount), unit_,
                                     short_count(amount / seconds))
                       : fmt::format("{}{}, {:.0f} s", what,
                                     done == 0 ? "" : ": " + short_count(amount), seconds);
  if (total_ != 0 && done != 0 && done <= total_) {
    const double fraction = amount / static_cast<double>(total_);
    line += fmt::format(", {:.0f} %, {:.0f} s left", 100 * fraction,
                        seconds * (1 - fraction) / fraction);
  }
  line += "\x1b[K";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace citcat
