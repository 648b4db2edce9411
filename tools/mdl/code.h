#pragma once
// Code of a metric, ready to run: variables are numbers, and all code terminates, because there are
// no loops.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace citcat::mdl {

/// The memory of the recorded machine at a point.
class PointMemory {
 public:
  virtual ~PointMemory() = default;
  /// Four bytes, with their sign; none where no evidence says what is there.
  virtual std::optional<std::int64_t> integer(std::int64_t address) const = 0;
};

/// What is known at a point that was reached.
struct PointValues {
  /// $arg; 0 beyond their end, none where no evidence says what it is.
  std::span<const std::optional<std::int64_t>> arguments;
  std::int64_t result = 0;              ///< $return
  const PointMemory* memory = nullptr;  ///< null: nothing of it is known
};

/// The variables and timers that code works on.
class Variables {
 public:
  virtual ~Variables() = default;
  virtual std::int64_t get(std::size_t variable) const = 0;
  virtual void set(std::size_t variable, std::int64_t value) = 0;
  virtual void start_timer() = 0;
  virtual void stop_timer() = 0;
};

/// Arithmetic is that of 64 bits and wraps around. What divides by 0 is 0. A value that is computed
/// from an unknown argument is unknown, too, and changes nothing.
struct CodeNode {
  enum class Kind : std::uint8_t {
    number,     ///< `value`
    variable,   ///< `variable`
    argument,   ///< $arg[parts[0]]
    result,     ///< $return
    symbol,     ///< the address of `name`; resolve() makes a number of it before it runs
    memory,     ///< the integer at the address parts[0]
    set,        ///< `variable` = parts[0]
    add_to,     ///< `variable` += parts[0]
    take_from,  ///< `variable` -= parts[0]
    count,      ///< `variable`++; its value before
    negate,
    add,
    subtract,
    multiply,
    divide,
    less,
    greater,
    less_or_equal,
    greater_or_equal,
    equal,
    unequal,
    both,    ///< && : the second only where the first is true
    either,  ///< || : the second only where the first is false
    start_timer,
    stop_timer,
    when,  ///< parts[1], where parts[0] is true
  };
  Kind kind = Kind::number;
  std::int64_t value = 0;
  std::size_t variable = 0;
  std::string name;
  std::vector<CodeNode> parts;

  /// None: something in it is not known, and what depends on that has not been done.
  std::optional<std::int64_t> run(Variables& variables, const PointValues& point) const;
  /// Steps that it takes at most.
  std::uint64_t cost() const;

 private:
  std::optional<std::int64_t> combine(std::int64_t a, std::int64_t b) const;
  std::optional<std::int64_t> argument(std::int64_t number, const PointValues& point) const;
};

}  // namespace citcat::mdl
