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

std::int64_t CodeNode::run(Variables& variables, const PointValues& point) const {
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
    case Kind::argument: {
      const std::uint64_t number = bits(part(0));
      return number < point.arguments.size() ? point.arguments[number] : 0;
    }
    case Kind::result:
      return point.result;
    case Kind::set:
      return change(part(0));
    case Kind::add_to: {
      const std::uint64_t by = bits(part(0));
      return change(wrapped(bits(variables.get(variable)) + by));
    }
    case Kind::take_from: {
      const std::uint64_t by = bits(part(0));
      return change(wrapped(bits(variables.get(variable)) - by));
    }
    case Kind::count: {
      const std::int64_t before = variables.get(variable);
      variables.set(variable, wrapped(bits(before) + 1));
      return before;
    }
    case Kind::negate:
      return wrapped(0 - bits(part(0)));
    case Kind::both:
      return part(0) != 0 && part(1) != 0 ? 1 : 0;
    case Kind::either:
      return part(0) != 0 || part(1) != 0 ? 1 : 0;
    case Kind::start_timer:
      variables.start_timer();
      return 0;
    case Kind::stop_timer:
      variables.stop_timer();
      return 0;
    case Kind::when:
      return part(0) != 0 ? part(1) : 0;
    default:
      break;
  }
  const std::int64_t a = part(0), b = part(1);
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

std::uint64_t CodeNode::cost() const {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{1},
                         [](std::uint64_t sum, const CodeNode& n) { return sum + n.cost(); });
}

}  // namespace citcat::mdl
