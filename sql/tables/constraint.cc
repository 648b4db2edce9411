#include "sql/tables/constraint.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace citcat::sql {

namespace {

constexpr IntegerRange kNone{1, 0};
constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
constexpr auto kMost = std::numeric_limits<std::int64_t>::max();

IntegerRange compared_with(Constraint::Is is, std::int64_t n) {
  switch (is) {
    case Constraint::Is::equal:
      return {n, n};
    case Constraint::Is::greater:
      return n == kMost ? kNone : IntegerRange{n + 1, kMost};
    case Constraint::Is::at_least:
      return {n, kMost};
    case Constraint::Is::less:
      return n == kLeast ? kNone : IntegerRange{kLeast, n - 1};
    case Constraint::Is::at_most:
      return {kLeast, n};
  }
  return {};
}

bool is_lower_bound(Constraint::Is is) {
  return is == Constraint::Is::greater || is == Constraint::Is::at_least;
}

IntegerRange compared_with_real(Constraint::Is is, double value) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  if (std::isnan(value)) return kNone;
  if (value >= kBeyond || value < -kBeyond) {
    if (is == Constraint::Is::equal) return kNone;
    return (value > 0) == is_lower_bound(is) ? kNone : IntegerRange{};
  }
  const double whole = std::floor(value);
  const auto n = static_cast<std::int64_t>(whole);
  if (whole == value) return compared_with(is, n);
  if (is == Constraint::Is::equal) return kNone;
  return is_lower_bound(is) ? compared_with(Constraint::Is::greater, n)
                            : compared_with(Constraint::Is::at_most, n);
}

IntegerRange range_of(const Constraint& c) {
  switch (c.value.kind) {
    case Cell::Kind::null:
      return kNone;
    case Cell::Kind::integer:
      return compared_with(c.is, c.value.number);
    case Cell::Kind::real:
      return compared_with_real(c.is, c.value.real);
    case Cell::Kind::text:
    case Cell::Kind::passing_text:
      return c.is == Constraint::Is::equal || is_lower_bound(c.is) ? kNone : IntegerRange{};
  }
  return {};
}

}  // namespace

IntegerRange integers_of(const Constraints& constraints, int column) {
  IntegerRange range;
  for (const Constraint& c : constraints) {
    if (c.column != column) continue;
    const IntegerRange one = range_of(c);
    range.first = std::max(range.first, one.first);
    range.last = std::min(range.last, one.last);
  }
  return range;
}

std::optional<std::string> text_of(const Constraints& constraints, int column) {
  for (const Constraint& c : constraints) {
    if (c.column == column && c.is == Constraint::Is::equal && c.value.is_text()) {
      return std::string(c.value.text);
    }
  }
  return std::nullopt;
}

}  // namespace citcat::sql
