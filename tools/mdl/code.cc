#include "tools/mdl/code.h"

#include <numeric>

namespace citcat::mdl {

namespace {

/// Wraps around, as unsigned numbers do.
std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  return a / b;
}

}  // namespace

std::optional<std::int64_t> CodeNode::argument(std::int64_t number,
                                               const PointValues& point) const {
  if (bits(number) >= point.arguments.size()) return 0;
  return point.arguments[bits(number)];
}

/// Combines operands for kinds that always need both.
std::optional<std::int64_t> CodeNode::combine(std::int64_t a, std::int64_t b) const {
  switch (kind) {
    case Kind::add:
      return wrapped(bits(a) + bits(b));
    case Kind::subtract:
      return wrapped(bits(a) - bits(b));
    case Kind::multiply:
      return wrapped(bits(a) * bits(b));
    case Kind::divide:
      return quotient(a, b);
    case Kind::less:
      return a < b ? 1 : 0;
    case Kind::greater:
      return a > b ? 1 : 0;
    case Kind::less_or_equal:
      return a <= b ? 1 : 0;
    case Kind::greater_or_equal:
      return a >= b ? 1 : 0;
    case Kind::equal:
      return a == b ? 1 : 0;
    default:
      return a != b ? 1 : 0;
  }
}

std::optional<std::int64_t> CodeNode::run(Variables& variables, const PointValues& point) const {
  const auto part = [&](std::size_t i) { return parts[i].run(variables, point); };
  const auto change = [&](std::int64_t to) {
    variables.set(variable, to);
    return to;
  };
  switch (kind) {
    case Kind::number:
      return value;
    case Kind::variable:
      return variables.get(variable);
    case Kind::result:
      return point.result;
    case Kind::symbol:
      return std::nullopt;
    case Kind::count: {
      const std::int64_t before = variables.get(variable);
      variables.set(variable, wrapped(bits(before) + 1));
      return before;
    }
    case Kind::start_timer:
      variables.start_timer();
      return 0;
    case Kind::stop_timer:
      variables.stop_timer();
      return 0;
    default:
      break;
  }
  const std::optional<std::int64_t> first = part(0);
  if (!first) return std::nullopt;
  const bool is_true = *first != 0;
  switch (kind) {
    case Kind::argument:
      return argument(*first, point);
    case Kind::memory:
      return point.memory != nullptr ? point.memory->integer(*first) : std::nullopt;
    case Kind::set:
      return change(*first);
    case Kind::add_to:
      return change(wrapped(bits(variables.get(variable)) + bits(*first)));
    case Kind::take_from:
      return change(wrapped(bits(variables.get(variable)) - bits(*first)));
    case Kind::negate:
      return wrapped(0 - bits(*first));
    case Kind::when:
      return is_true ? part(1) : 0;
    case Kind::both:
      if (!is_true) return 0;
      break;
    case Kind::either:
      if (is_true) return 1;
      break;
    default:
      break;
  }
  const std::optional<std::int64_t> second = part(1);
  if (!second) return std::nullopt;
  if (kind == Kind::both || kind == Kind::either) return *second != 0 ? 1 : 0;
  return combine(*first, *second);
}

std::uint64_t CodeNode::cost() const {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{1},
                         [](std::uint64_t sum, const CodeNode& n) { return sum + n.cost(); });
}

}  // namespace citcat::mdl
