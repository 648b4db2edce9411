#pragma once
// Whose turn it was on a shared bus: stretches in which the bus shows only one of the processors.
// They put the instructions of all processors into one order.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "events/position.h"
#include "events/processors/shared_bus.h"

namespace citcat {

class BusTurns {
 public:
  /// For one processor: its whole run is one turn.
  BusTurns() : ends_(1), begins_(1) {}
  /// Takes all of `bus`, which `processors` share. FormatError where the evidence is damaged.
  BusTurns(SharedBus bus, std::size_t processors);

  /// Turns that the bus shows. What a processor does after its last one comes in a turn of its
  /// own, after all of these.
  std::uint64_t count() const { return count_; }
  /// The turn in which the processor's instruction at `at` runs.
  std::uint64_t turn_of(std::size_t processor, Position at) const;
  /// The turn in which the last instruction, or iteration of a REP, before `at` ran; at the
  /// beginning as turn_of().
  std::uint64_t turn_before(std::size_t processor, Position at) const;
  /// When the processor's instruction at `at` runs, by the clock of the bus: between two turns of
  /// its own spread evenly over its instructions, after its last one an instruction a clock.
  std::uint64_t clock_of(std::size_t processor, Position at) const;
  /// The instruction at which the processor is when `turn` begins; within a REP, its own.
  std::uint64_t before(std::size_t processor, std::uint64_t turn) const;

 private:
  struct End {
    std::uint64_t turn = 0;
    Position position;        ///< of what comes after it: N+1 after instruction N without REP
    std::uint64_t clock = 0;  ///< when the bus first shows its last instruction or iteration
  };
  /// The first end after `at`.
  std::vector<End>::const_iterator end_behind(std::size_t processor, Position at) const;

  std::vector<std::vector<End>> ends_;  ///< by processor, in the order of time
  std::vector<std::uint64_t> begins_;   ///< by processor: the clock of its first transaction
  std::uint64_t count_ = 0;
};

}  // namespace citcat
