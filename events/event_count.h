#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace citcat {

/// The unit of a monitor's counter. Archives contain these numbers.
enum class CountUnit : std::uint8_t {
  /// Completed instructions, as Position does.
  instructions = 0,
  /// Pulses of pins that report completed instructions (IU and IV of a Pentium). There may also be
  /// pulses for iterations of a REP, for an instruction that faults and for the delivery of an
  /// interrupt or exception: no document says.
  completions = 1,
  /// Branches taken: completed instructions that transfer control (jumps, CALL, RET, INT, IRET and
  /// the like; Jcc and LOOP if they jump). The delivery of interrupts and exceptions does not
  /// count.
  branches = 2,
  /// Ends of basic blocks: the same, and Jcc and LOOP that do not jump.
  blocks = 3,
  /// Pulses of a pin that reports taken branches (IBT of a Pentium). There may be one, too, for a
  /// delivery and for an instruction that loads a segment or serialises the processor.
  branch_pulses = 4,
};
inline constexpr CountUnit kLastCountUnit = CountUnit::branch_pulses;

/// The name in options and JSON, e.g. "branches".
constexpr std::string_view count_unit_name(CountUnit unit) {
  constexpr std::string_view kNames[] = {"instructions", "completions", "branches", "blocks",
                                         "branch-pulses"};
  return kNames[static_cast<std::size_t>(unit)];
}

/// The count of a monitor before an event.
struct EventCount {
  CountUnit unit = CountUnit::completions;  ///< not instructions, which are a Position
  std::uint64_t value = 0;
  /// True if the count begins at the start of the recording; else it begins at some earlier moment,
  /// the same for all events.
  bool from_start = false;
  bool operator==(const EventCount&) const = default;
};

}  // namespace citcat
