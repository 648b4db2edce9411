#pragma once
// What the emulator's log says about a processor, in the order of the log: deliveries and resets.

#include "monitor/delivery/deliveries.h"
#include "monitor/delivery/resets.h"

namespace citcat::monitor {

class EventLog {
 public:
  EventLog(Observation& seen, Deliveries& deliveries, Resets& resets)
      : seen_(seen), cpu_(seen.cpu), deliveries_(deliveries), resets_(resets) {}

  /// Takes what is new. `next`: the instruction that is about to start.
  void take(const Insn& next) {
    if (cpu_.log.pending() || cpu_.in_real_mode()) take_new(next);
  }
  void take_new(const Insn& next);

 private:
  void refuse_two_traps(const LoggedEvent& first, const LoggedEvent& second);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Deliveries& deliveries_;
  Resets& resets_;
};

}  // namespace citcat::monitor
