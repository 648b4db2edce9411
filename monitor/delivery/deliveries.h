#pragma once
// Interrupts and exceptions: which instructions end before them, and what the bus shows.

#include <cstdint>
#include <vector>

#include "monitor/delivery/handler_entry.h"
#include "monitor/delivery/real_mode_frames.h"
#include "monitor/processor/observation.h"
#include "monitor/units/accesses.h"
#include "monitor/units/execution.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class Deliveries {
 public:
  Deliveries(Observation& seen, Units& units, Accesses& accesses, Execution& execution)
      : seen_(seen),
        cpu_(seen.cpu),
        flight_(seen.flight),
        units_(units),
        accesses_(accesses),
        execution_(execution),
        entry_(seen, units),
        real_frames_(seen, units) {}

  /// `second`: the exception that ended this delivery, if one did. What a processor would push of
  /// it is noted there.
  void deliver(const LoggedEvent& event, LoggedEvent* second = nullptr);
  /// Everything that real mode has delivered since the instruction in flight started, the oldest
  /// first; `events` are those that were logged. `next` is about to start.
  void deliver_real(std::vector<LoggedEvent> events, const Insn& next);

 private:
  bool is_own_trap(const LoggedEvent& event) const;
  bool finish_before(const LoggedEvent& event, bool unfinished, bool own);
  void take_control(const LoggedEvent& event);
  void announce(const LoggedEvent& event);
  void note_fault(const LoggedEvent& event);
  void find_first_page(const LoggedEvent& event, bool at_flight);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Flight& flight_;
  Units& units_;
  Accesses& accesses_;
  Execution& execution_;
  HandlerEntry entry_;
  RealModeFrames real_frames_;
};

}  // namespace citcat::monitor
