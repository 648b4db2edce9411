#include "formats/captures/table_times.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "formats/captures/table_text.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

constexpr std::string_view kAroundUnits = " \t[](){}/,:_";

std::string_view without_brackets(std::string_view text) {
  const auto begin = text.find_first_not_of(kAroundUnits);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kAroundUnits) - begin + 1);
}

/// The rest of a lower-case name after the word for a time that it begins with.
std::optional<std::string_view> behind_time(std::string_view name) {
  // The longer words first.
  for (const std::string_view word : {"timestamp", "time stamp", "time", "zeit"})
    if (name.starts_with(word)) return name.substr(word.size());
  // "t [s]", "t/ms": a name that only its unit makes one of times.
  if (name.size() > 1 && name[0] == 't' && kAroundUnits.find(name[1]) != std::string_view::npos)
    return name.substr(1);
  return std::nullopt;
}

/// The number of a time, and what follows it.
struct Written {
  std::string digits;  ///< as std::from_chars() reads it
  double unit = 0;
};

/// The last sign of the two is the decimal one, where it is once; the others part thousands.
std::string with_decimal_point(std::string_view number) {
  const auto last = number.find_last_of(",.");
  if (last == std::string_view::npos) return std::string(number);
  const char sign = number[last];
  const char other = sign == ',' ? '.' : ',';
  const bool grouped = std::count(number.begin(), number.end(), sign) > 1;
  std::string text;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const char c = number[i];
    if (c == other || (c == sign && (grouped || i != last))) continue;
    text += c == ',' ? '.' : c;
  }
  return text;
}

/// A number of two digits, or of four.
int digits_at(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  for (std::size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
  return value;
}

/// The date of a text that begins with a date and a time of day ("2024-05-10T17:07:46"; ISO 8601);
/// nothing for anything else, or for a day that does not exist.
std::optional<std::chrono::year_month_day> date_of(std::string_view text) {
  static constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd";
  constexpr std::size_t kMonth = 5, kDay = 8;
  if (text.size() < kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const char c = text[i];
    const bool fits = kForm[i] == 'd'   ? c >= '0' && c <= '9'
                      : kForm[i] == 'T' ? c == 'T' || c == ' '
                                        : c == kForm[i];
    if (!fits) return std::nullopt;
  }
  const std::chrono::year_month_day date{
      std::chrono::year(digits_at(text, 0, 4)),
      std::chrono::month(static_cast<unsigned>(digits_at(text, kMonth, 2))),
      std::chrono::day(static_cast<unsigned>(digits_at(text, kDay, 2)))};
  return date.ok() ? std::optional(date) : std::nullopt;
}

/// "2024-05-10T17:07:46.123456789+02:00" (as Saleae's Logic writes on request): the time of day in
/// seconds, as text, which keeps all digits. Nothing for anything else.
std::optional<std::string> take_clock_time(std::string_view text) {
  constexpr std::size_t kHour = 11, kMinute = 14, kSecond = 17, kEnd = 19;
  if (!date_of(text)) return std::nullopt;
  const int minutes = digits_at(text, kHour, 2) * 60 + digits_at(text, kMinute, 2);
  std::string digits = std::to_string(minutes * 60 + digits_at(text, kSecond, 2));
  std::string_view rest = text.substr(kEnd);
  if (!rest.empty() && (rest.front() == '.' || rest.front() == ',')) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    digits += '.';
    digits += rest.substr(1, end - 1);
    rest.remove_prefix(end);
  }
  const bool zone = rest.empty() || rest == "Z" ||
                    ((rest.front() == '+' || rest.front() == '-') &&
                     rest.find_first_not_of("0123456789:", 1) == std::string_view::npos);
  return zone ? std::optional(std::move(digits)) : std::nullopt;
}

/// A number without apostrophes and blanks between its digits, which part thousands (Unicode 15:
/// U+00A0, U+2009, U+202F, U+2019).
std::string without_gaps(std::string_view text) {
  static constexpr std::string_view kGaps[] = {
      " ", "'", "\xc2\xa0", "\xe2\x80\x89", "\xe2\x80\xaf", "\xe2\x80\x99"};
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  std::string joined;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t gap = 0;
    for (const std::string_view sign : kGaps)
      if (text.substr(i).starts_with(sign) && i != 0 && is_digit(i - 1) &&
          is_digit(i + sign.size()))
        gap = sign.size();
    if (gap == 0) joined += text[i++];
    i += gap;
  }
  return joined;
}

std::optional<Written> take_time(std::string_view cell, double unit) {
  std::string_view text = trimmed(cell);
  if (auto digits = take_clock_time(text)) return Written{std::move(*digits), 1};
  // Nearly all numbers have none, and a capture has millions of them.
  std::string joined;
  if (text.find_first_of(" '\xc2\xe2") != std::string_view::npos) {
    joined = without_gaps(text);
    text = joined;
  }
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  std::size_t end = std::min(text.find_first_not_of("0123456789+-.,"), text.size());
  // The exponent, which no unit begins like.
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E'))
    end = std::min(text.find_first_not_of("0123456789+-", end + 1), text.size());
  Written written{with_decimal_point(text.substr(0, end)), unit};
  const std::string_view rest = trimmed(text.substr(end));
  if (!rest.empty()) {
    written.unit = unit_of_time(rest);
    if (written.unit == 0) return std::nullopt;
  }
  return written;
}

}  // namespace

double unit_of_time(std::string_view text) {
  // The micro sign, and the Greek letter (Unicode 15, U+00B5 and U+03BC).
  static constexpr std::pair<std::string_view, double> kUnits[] = {{"s", 1},
                                                                   {"sec", 1},
                                                                   {"second", 1},
                                                                   {"seconds", 1},
                                                                   {"ms", 1e-3},
                                                                   {"msec", 1e-3},
                                                                   {"milliseconds", 1e-3},
                                                                   {"us", 1e-6},
                                                                   {"usec", 1e-6},
                                                                   {"\xc2\xb5s", 1e-6},
                                                                   {"\xce\xbcs", 1e-6},
                                                                   {"microseconds", 1e-6},
                                                                   {"ns", 1e-9},
                                                                   {"nsec", 1e-9},
                                                                   {"nanoseconds", 1e-9},
                                                                   {"ps", 1e-12},
                                                                   {"psec", 1e-12},
                                                                   {"picoseconds", 1e-12},
                                                                   {"fs", 1e-15}};
  const std::string word = lower_case(without_brackets(text));
  for (const auto& [name, seconds] : kUnits)
    if (word == name) return seconds;
  return 0;
}

bool names_a_position(std::string_view column) {
  static constexpr std::string_view kCounts[] = {
      "sample",   "line",       "sample number",

      "sample #", "sample no.", "index",         "#", "no", "no.", "nr", "nr."};
  const std::string name = lower_case(column);
  return name.starts_with("time") || name.starts_with("zeit") || name.starts_with("state number") ||
         name.starts_with("sample counter") ||
         std::find(std::begin(kCounts), std::end(kCounts), name) != std::end(kCounts) ||
         unit_of_column(column) != 0;
}

double unit_of_column(std::string_view column) {
  const std::string name = lower_case(column);
  if (const auto rest = behind_time(name)) return unit_of_time(*rest);
  // A channel may be named S or MS: only whole words are units that stand alone.
  return name.size() > 4 ? unit_of_time(name) : 0;
}

bool is_unit_cell(std::string_view cell) {
  static constexpr std::string_view kUnits[] = {"v",    "mv",      "volt",  "volts", "logic",
                                                "bool", "digital", "level", "hex",   "bin"};
  if (cell.empty() || unit_of_time(cell) != 0) return true;
  const std::string_view inside = without_brackets(cell);
  return inside.empty() ||
         std::find(std::begin(kUnits), std::end(kUnits), lower_case(inside)) != std::end(kUnits);
}

std::optional<double> parse_time(std::string_view text, double unit) {
  const auto written = take_time(text, unit);
  if (!written) return std::nullopt;
  double value = 0;
  const char* const end = written->digits.data() + written->digits.size();
  const auto result = std::from_chars(written->digits.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value * written->unit;
}

std::optional<std::int64_t> day_of_time(std::string_view text) {
  const auto date = date_of(trimmed(text));
  if (!date) return std::nullopt;
  return std::chrono::sys_days(*date).time_since_epoch().count();
}

namespace {

/// "1.020", "12,345": up to three digits, and three after the sign. '.', ',' or 0.
char sign_before_three(std::string_view text) {
  const std::size_t at = text.find_first_not_of("0123456789");
  if (at == std::string_view::npos || at == 0 || at > 3 || text.size() != at + 4) return 0;
  const bool digits = text.find_first_not_of("0123456789", at + 1) == std::string_view::npos;
  return digits && (text[at] == '.' || text[at] == ',') ? text[at] : '\0';
}

}  // namespace

char sign_of_thousands(std::span<const std::string_view> cells, double unit) {
  constexpr std::size_t kEnough = 8;
  constexpr double kClosest = 0.5e-9;
  char sign = 0;
  double first = 0, last = 0;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view cell = trimmed(cells[i]);
    const char found = sign_before_three(cell);
    // Whole numbers below a thousand need no sign; a fraction has one, or begins with 0.
    const bool whole = cell.size() <= 3 && cell.find_first_not_of("0123456789") == cell.npos;
    if ((found == 0 && !whole) || (found != 0 && (cell[0] == '0' || (sign != 0 && found != sign))))
      return 0;
    if (found != 0) sign = found;
    const auto time = parse_time(cell, unit);
    if (!time) return 0;
    (i == 0 ? first : last) = *time;
  }
  if (cells.size() < kEnough || sign == 0) return 0;
  return (last - first) / static_cast<double>(cells.size() - 1) < kClosest ? sign : '\0';
}

double resolution_of_time(std::string_view text, double unit) {
  const auto written = take_time(text, unit);
  if (!written || written->digits.empty()) return 0;
  const std::string_view digits = written->digits;
  if (digits.find_first_of("eE") != std::string_view::npos) return 0;
  const auto point = std::min(digits.find('.'), digits.size() - 1);
  return std::pow(10.0, -static_cast<double>(digits.size() - point - 1)) * written->unit;
}

void RowClock::learn(std::span<const double> times, double resolution) {
  // Fewer rows may be one step apart by chance.
  constexpr std::size_t kEnough = 8;
  // Arithmetic with numbers of 53 bits, of which four are lost.
  constexpr double kRounding = 2e-15;
  if (rate_ > 0 || times.size() < kEnough) return;
  const double step = (times.back() - times.front()) / static_cast<double>(times.size() - 1);
  if (!(step > 0)) return;
  // Six digits are what printf's %g writes.
  const double slack = std::min(1.5 * resolution, step / 4) +
                       1e-6 * (times.back() - times.front()) + kRounding * std::abs(times.back());
  if (slack * 2 > step) return;
  for (std::size_t i = 1; i < times.size(); ++i)
    if (std::abs(times[i] - times[i - 1] - step) > slack) return;
  step_ = step;
}

std::optional<std::uint64_t> RowClock::number_of(double seconds) {
  constexpr double kNanoseconds = 1e9;
  constexpr double kMost = 9e18;
  if (!any_) {
    begin_ = step_ > 0 ? seconds : std::min(seconds, 0.0);
  } else if (seconds < last_) {
    return std::nullopt;
  }
  // By steps from row to row, so that the rounding of a step does not add up.
  const double from = step_ > 0 && any_ ? last_ : begin_;
  const double rate = rate_ > 0 ? rate_ : step_ > 0 ? 1 / step_ : kNanoseconds;
  const double steps = (seconds - from) * rate;
  const double scaled = std::round(steps);
  if (!(scaled >= 0 && scaled < kMost)) return std::nullopt;
  constexpr double kWhole = 0.25;
  if (step_ > 0 && std::abs(steps - scaled) > kWhole) ++uneven_;
  auto number = static_cast<std::uint64_t>(scaled);
  if (step_ > 0 && any_) number += number_;
  if (any_ && number <= number_) {
    number = number_ + 1;
    ++crowded_;
  }
  if (static_cast<double>(number) > kMost) return std::nullopt;
  last_ = seconds;
  number_ = number;
  any_ = true;
  return number;
}

}  // namespace citcat
