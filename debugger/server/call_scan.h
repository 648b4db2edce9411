#pragma once
// The calls, interrupts, exceptions and system calls that have not returned where the run is, as
// far as they began in the stretch that is listened to. A call counts only if its return address is
// still on the stack.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "debugger/server/run_events.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"

namespace citcat {

struct OpenCall {
  Position at;                      ///< of the call
  LinearAddr call;                  ///< the instruction
  LinearAddr target;                ///< where the procedure begins
  LinearAddr return_to;             ///< after the call
  LinearAddr slot;                  ///< of the return address
  std::uint64_t return_offset = 0;  ///< what lies there: an offset in CS
  unsigned slot_bytes = 4;
};

struct OpenNest {
  std::vector<OpenCall> calls;  ///< the innermost first
  std::vector<InterruptNest::Entered> entered;
};

class CallScan final : public Observer {
 public:
  /// The machine whose run is followed; it must outlive the object.
  explicit CallScan(const Machine& machine) : machine_(machine), nest_(machine) {}

  /// The calls and interrupts that are open at the machine's position.
  OpenNest open() const { return {open_calls(), nest_.entered()}; }

  Interest interest() const override { return {.code = Detail::blocks}; }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override {
    nest_.delivered(event, now);
  }

 private:
  std::vector<OpenCall> open_calls() const;
  void look_at(const ExecutedBlock& block, Position first);
  void look_at(const ExecutedInstruction& e, Position now);
  void arrive(LinearAddr at);
  void returned_from(LinearAddr slot);
  bool stack_holds(const OpenCall& call) const;

  const Machine& machine_;
  InterruptNest nest_;
  std::deque<OpenCall> calls_;
  bool arrives_ = false;  ///< the last call has not reached its target
};

/// The linear address that the stack pointer has.
LinearAddr stack_pointer(const Machine& machine);
/// The number of up to eight bytes there, as the supervisor finds it; nullopt where some byte is
/// not known.
std::optional<std::uint64_t> number_at(const Machine& machine, LinearAddr at, unsigned bytes);

}  // namespace citcat
