#pragma once
// Resets of the whole machine: the processor begins anew, memory stays, and the recording goes on.
// Caches stay as they are too: the emulator has none that a reset could empty.

#include "monitor/delivery/deliveries.h"

namespace citcat::monitor {

class Resets {
 public:
  Resets(Observation& seen, Units& units, Execution& execution, Deliveries& deliveries)
      : seen_(seen),
        cpu_(seen.cpu),
        units_(units),
        execution_(execution),
        deliveries_(deliveries) {}

  /// `found`: a shutdown or a reset. `failed`: the delivery of a double fault that shut the
  /// processor down, where the emulator has logged it.
  void take(LogItem item, const LoggedEvent& found, LoggedEvent* failed);

 private:
  void begin_anew();

  Observation& seen_;
  ObservedProcessor& cpu_;
  Units& units_;
  Execution& execution_;
  Deliveries& deliveries_;
};

}  // namespace citcat::monitor
