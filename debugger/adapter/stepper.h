#pragma once
// Moves of one processor: over and out of calls, by instructions and by lines, forwards and back.

#include <cstdint>
#include <optional>
#include <vector>

#include "debugger/adapter/debuggee.h"

namespace citcat::dap {

enum class Unit : std::uint8_t { instruction, line };

class Stepper {
 public:
  /// All must outlive the object.
  Stepper(Debuggee& debuggee, const DebugTarget::Interrupt& interrupt)
      : debuggee_(debuggee), target_(debuggee.target()), interrupt_(interrupt) {}

  /// To the next instruction or line; what is called runs on the way.
  MoveEnd over(Unit unit);
  /// The same, into what is called.
  MoveEnd into(Unit unit);
  /// To after the call of the procedure that runs, or to where the interrupt came.
  MoveEnd out();
  /// Back by an instruction, or to the beginning of the line before, over what was called.
  MoveEnd back(Unit unit);

 private:
  MoveEnd over_instruction();
  std::optional<ReturnSlot> slot_of_call(const DecodedInstruction& call, LinearAddr from);
  MoveEnd into_instruction();
  MoveEnd back_over_instruction();
  MoveEnd back_to_call(LinearAddr behind, LinearAddr stack);
  /// Goes on to one of the addresses with the stack pointer at `stack` or a little above. A store
  /// to `slot` changes where the procedure returns to, or shows that it has returned.
  MoveEnd run_to(std::vector<LinearAddr> addresses, const StackPlace& stack,
                 const std::optional<ReturnSlot>& slot = {});
  /// Whether the store to the slot that was just made ends such a move; may change `addresses`.
  bool has_returned(const ReturnSlot& slot, std::vector<LinearAddr>& addresses,
                    const StackPlace& stack);
  template <class Move>
  MoveEnd by_lines(Move&& move);
  std::optional<SourcePlace> place() const { return debuggee_.lines().find(debuggee_.pc()); }

  Debuggee& debuggee_;
  DebugTarget& target_;
  const DebugTarget::Interrupt& interrupt_;
};

}  // namespace citcat::dap
