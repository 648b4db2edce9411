#pragma once
// Near jumps, calls and returns, and ENTER: what the engine checks too late or not at all (Intel
// SDM vol. 2, CALL and JMP).

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class FarReturn;
class Operands;
class Retirement;

/// Checks throw before anything is changed.
class NearTransfer {
 public:
  /// All must outlive the object.
  NearTransfer(CpuContext& cpu, InFlight& flight, Operands& operands, Retirement& retirement,
               FarReturn& returns)
      : cpu_(cpu),
        flight_(flight),
        operands_(operands),
        retirement_(retirement),
        returns_(returns) {}

  /// A near transfer to beyond the limit of the code segment is refused at the instruction that
  /// makes it, with nothing pushed or popped. The engine gets there first.
  void check_target();
  /// ENTER refuses where its frame has no room, though it does not touch what it leaves free (SDM
  /// vol. 2, ENTER: the final value of the stack pointer).
  void check_final_stack();
  /// ENTER with 16-bit operands changes BP alone. The engine goes by the size of the stack.
  void keep_upper_frame_pointer();
  /// RET that releases 32 KiB or more: the engine takes the number for a negative one.
  void return_near();

 private:
  bool takes_branch() const;
  std::uint64_t branch_target();
  std::uint64_t wide_branch_target();

  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;
  Retirement& retirement_;
  FarReturn& returns_;

  std::uint64_t frame_before_ = 0;  ///< EBP before ENTER
};

}  // namespace citcat
