#pragma once
// What has to be kept about an instruction when it begins, and what is done when it has ended.

#include "monitor/processor/observation.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class Execution {
 public:
  Execution(Observation& seen, Units& units)
      : seen_(seen), cpu_(seen.cpu), flight_(seen.flight), units_(units) {}

  /// Keeps what is gone when the instruction has ended.
  void prepare(const Insn& insn);
  /// The instruction in flight has ended. `after`: the state it left, where the processor has gone
  /// on since.
  void finish(const LoggedState* after = nullptr);
  /// The instruction in flight has ended before a reset or an SMI (`what`, for a message), unless
  /// it is about to go on. The emulator's registers are others by now.
  void end_before(const LoggedState& before, const char* what);

 private:
  void follow_a20();
  void finish_wrmsr();
  void finish_debug_register(const Insn& insn);
  void refuse_wrong_debug_status(const Insn& insn);
  std::uint32_t low_after(unsigned n) const {
    return static_cast<std::uint32_t>(flight_.gpr_after(n, cpu_.registers));
  }

  Observation& seen_;
  ObservedProcessor& cpu_;
  Flight& flight_;
  Units& units_;
};

}  // namespace citcat::monitor
