#include "events/capture_time.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace citcat {

std::optional<double> parse_capture_time(const std::string& text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (result.ec != std::errc{} || std::signbit(number) || !std::isfinite(number))
    return std::nullopt;
  const std::string_view unit(result.ptr, static_cast<std::size_t>(end - result.ptr));
  for (const auto& [name, seconds] : kUnits)
    if (unit == name) return number * seconds;
  return std::nullopt;
}

std::string capture_time_text(std::uint64_t clock, double rate) {
  char text[48];
  std::snprintf(text, sizeof text, "%.9fs", static_cast<double>(clock) / rate);
  return text;
}

double clock_rate(const Provenance& provenance) {
  const auto options = nlohmann::json::parse(provenance.options, nullptr, false);
  if (!options.is_object()) return 0;
  const auto rate = options.find("clock_hz");
  return rate != options.end() && rate->is_number() ? std::max(0.0, rate->get<double>()) : 0;
}

std::uint64_t clock_at(double seconds, double rate) {
  // 1.5 ms at 10 MHz is clock 15000 and not the next one, whatever the last bit of the product
  // says.
  const double clock = seconds * rate;
  const double whole = std::round(clock);
  const double first =
      std::abs(clock - whole) < 1e-6 * std::max(1.0, whole * 1e-6) ? whole : std::ceil(clock);
  constexpr double kLast = 18446744073709549568.0;  // the last double below 2^64
  return first >= kLast ? std::numeric_limits<std::uint64_t>::max()
                        : static_cast<std::uint64_t>(first);
}

}  // namespace citcat
