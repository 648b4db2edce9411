#pragma once

#include <compare>
#include <cstdint>

namespace citcat {

/// A moment of the run, in the replayer's own unit.
///
/// `instruction` counts instructions completed since the start. A whole REP string instruction is
/// one instruction; INT n, IRET and HLT count; an instruction that faults and the delivery of an
/// interrupt or exception do not. `iteration` counts the completed iterations of the REP
/// instruction in progress since it was last started or restarted; 0 at every instruction boundary.
struct Position {
  std::uint64_t instruction = 0;
  std::uint32_t iteration = 0;
  constexpr auto operator<=>(const Position&) const = default;
};

}  // namespace citcat
