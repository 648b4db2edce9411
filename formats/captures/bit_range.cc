#include "formats/captures/bit_range.h"

#include <algorithm>

#include "formats/captures/table_text.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

std::optional<std::uint64_t> take_number(std::string_view& text) {
  constexpr std::size_t kMostDigits = 3;
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::uint64_t number = 0;
  if (end > kMostDigits || !parse_decimal(text.substr(0, end), number)) return std::nullopt;
  text.remove_prefix(end);
  return number;
}

bool take_range_sign(std::string_view& text) {
  text = trimmed(text);
  for (const std::string_view sign : {"..", ":", "-", "downto", "to"}) {
    if (lower_case(text.substr(0, sign.size())) != sign) continue;
    text = trimmed(text.substr(sign.size()));
    return true;
  }
  return false;
}

std::optional<BitRange> range_from(std::string_view stem, std::uint64_t first, std::uint64_t last) {
  if (stem.empty()) return std::nullopt;
  return BitRange{std::string(stem), std::max(first, last), std::min(first, last), first < last};
}

std::optional<BitRange> range_without_brackets(std::string_view name) {
  const std::size_t digit = name.find_first_of("0123456789");
  if (digit == std::string_view::npos || digit == 0) return std::nullopt;
  const std::string_view stem = name.substr(0, digit);
  std::string_view rest = name.substr(digit);
  const auto first = take_number(rest);
  if (!first || !take_range_sign(rest)) return std::nullopt;
  const bool repeats_stem = lower_case(rest.substr(0, stem.size())) == lower_case(stem);
  if (!repeats_stem && stem.back() != ' ') return std::nullopt;
  if (repeats_stem) rest.remove_prefix(stem.size());
  const auto last = take_number(rest);
  if (!last || (!rest.empty() && rest[0] != ' ')) return std::nullopt;
  if (!repeats_stem) return range_from(trimmed(stem), *first, *last);
  return range_from(stem, std::max(*first, *last), std::min(*first, *last));
}

}  // namespace

std::optional<BitRange> bracketed_range(std::string_view name) {
  constexpr std::string_view kOpen = "[(<", kClose = "])>";
  for (std::size_t open = name.find_first_of(kOpen); open != std::string_view::npos;
       open = name.find_first_of(kOpen, open + 1)) {
    std::string_view rest = trimmed(name.substr(open + 1));
    const auto first = take_number(rest);
    if (!first || !take_range_sign(rest)) continue;
    const auto last = take_number(rest);
    rest = trimmed(rest);
    if (last && !rest.empty() && kClose.find(rest[0]) != std::string_view::npos)
      return range_from(trimmed(name.substr(0, open)), *first, *last);
  }
  return std::nullopt;
}

std::optional<BitRange> bit_range_of(std::string_view name) {
  const auto range = bracketed_range(name);
  return range ? range : range_without_brackets(name);
}

}  // namespace citcat
