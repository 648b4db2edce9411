#pragma once
// How well the code fetches of a capture follow one another: a fetch continues where the one before
// ended, or is at the target of the jump that was fetched last. With a wrong channel, fewer fetches
// do so.

#include <cstdint>
#include <deque>
#include <optional>

#include "events/bus_transaction.h"

namespace citcat {

class CodeOrder {
 public:
  void add(const BusTransaction& t);

  std::uint64_t fetches() const { return fetches_; }
  std::uint64_t going_on() const { return going_on_; }
  std::uint64_t led_to() const { return led_to_; }
  /// Fetches that go on, and those that a jump leads to.
  std::uint64_t in_order() const { return going_on_ + led_to_; }
  /// The latter are fewer, and prove more.
  std::uint64_t score() const { return going_on_ + 4 * led_to_; }

 private:
  bool is_led_to(PhysAddr target) const;
  std::uint8_t byte(std::size_t i) const { return code_[i]; }

  std::uint64_t fetches_ = 0, going_on_ = 0, led_to_ = 0;
  std::optional<PhysAddr> next_;
  std::deque<std::uint8_t> code_;  ///< the last bytes before next_
};

}  // namespace citcat
