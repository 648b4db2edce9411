#pragma once
// The calls, interrupts, exceptions and system calls that have not returned at the current
// position, as far as they began in the observed stretch. A call counts only if its return address
// is still on the stack, in the part that is in use, and only if it is on the stack that the
// processor uses: open calls of other tasks are left out.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "debugger/server/open_stacks.h"
#include "debugger/server/run_events.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

struct OpenNest {
  std::vector<OpenCall> calls;  ///< the innermost first
  std::vector<InterruptNest::Entered> entered;
};

class CallScan final : public Observer {
 public:
  /// The machine whose run is followed; it must outlive the object.
  explicit CallScan(const Machine& machine) : machine_(machine), nest_(machine) {}

  /// The calls and interrupts that are open at the machine's position.
  OpenNest open() const;
  /// Grows with each event that may change the result of open(), except changes of memory and of
  /// the stack pointer. Valid only if the run is observed instruction by instruction.
  std::uint64_t changes() const { return changes_; }

  Interest interest() const override { return {.code = Detail::blocks}; }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;

 private:
  AddressSpaceId space() const;
  void look_at(const ExecutedBlock& block, Position first);
  void look_at(const ExecutedInstruction& e, Position now);
  void stack_loaded(const ExecutedBlock& block, std::uint32_t i);
  void settle_by(const ExecutedInstruction& e);
  void changed_level(const ExecutedInstruction& e, Position now);
  void interrupt_returned(const ExecutedInstruction& iret);
  void arrive(LinearAddr at);
  bool stack_holds(const OpenCall& call) const;

  const Machine& machine_;
  InterruptNest nest_;
  OpenStacks stacks_;
  std::optional<Position> arrives_;  ///< the call made last, which has not reached its target
  std::uint64_t changes_ = 0;
  bool settles_ = false;  ///< the stack pointer was loaded, and nothing was pushed or popped since
};

StackPlace stack_place(const Machine& machine);
/// The stack pointer is back at `there`, but for what a procedure takes from the stack when it
/// returns, on the same stack.
bool has_come_back(const StackPlace& now, const StackPlace& there);
/// The linear address that the stack pointer has.
LinearAddr stack_pointer(const Machine& machine);
/// The number of up to eight bytes there, as the supervisor finds it; nullopt where some byte is
/// not known.
std::optional<std::uint64_t> number_at(const Machine& machine, LinearAddr at, unsigned bytes);

}  // namespace citcat
