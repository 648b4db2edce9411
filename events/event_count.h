#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace citcat {

/// What a monitor's counter counts. Numbers are kept in archives.
enum class CountUnit : std::uint8_t {
  /// Completed instructions, as Position does.
  instructions = 0,
  /// Pulses of pins that report completed instructions (IU and IV of a Pentium). Whether one comes
  /// for each iteration of a REP, for an instruction that faults and for the delivery of an
  /// interrupt or exception, is not documented: there may be one.
  completions = 1,
  /// Branches taken: completed instructions that transfer control (jumps, CALL, RET, INT, IRET and
  /// their like; Jcc and LOOP where they jump). The delivery of interrupts and exceptions is none.
  branches = 2,
  /// Basic blocks ended: the same, and Jcc and LOOP that do not jump.
  blocks = 3,
  /// Pulses of a pin that reports taken branches (IBT of a Pentium). There may be one, too, for a
  /// delivery and for an instruction that loads a segment or serialises the processor.
  branch_pulses = 4,
};
inline constexpr CountUnit kLastCountUnit = CountUnit::branch_pulses;

/// As options and JSON name it, e.g. "branches".
constexpr std::string_view count_unit_name(CountUnit unit) {
  constexpr std::string_view kNames[] = {"instructions", "completions", "branches", "blocks",
                                         "branch-pulses"};
  return kNames[static_cast<std::size_t>(unit)];
}

/// How many of `unit` were counted before an event.
struct EventCount {
  CountUnit unit = CountUnit::completions;  ///< not instructions, which are a Position
  std::uint64_t value = 0;
  /// Counted from the start of the recording; else from some instant before, the same for all
  /// events.
  bool from_start = false;
  bool operator==(const EventCount&) const = default;
};

}  // namespace citcat
