#pragma once
// What the emulator's log says about a processor, in the order of the log: deliveries, system
// management mode and resets.

#include <optional>
#include <vector>

#include "monitor/delivery/deliveries.h"
#include "monitor/delivery/resets.h"
#include "monitor/delivery/system_management.h"

namespace citcat::monitor {

class EventLog {
 public:
  EventLog(Observation& seen, Deliveries& deliveries, SystemManagement& management, Resets& resets)
      : seen_(seen),
        cpu_(seen.cpu),
        deliveries_(deliveries),
        management_(management),
        resets_(resets) {}

  /// Takes what is new. `next`: the instruction that is about to start.
  void take(const Insn& next) {
    if (cpu_.log.pending() || cpu_.in_real_mode()) take_new(next);
  }
  void take_new(const Insn& next);

 private:
  LogItem take_deliveries(LogItem item, LoggedEvent& event, std::vector<LoggedEvent>& real,
                          std::optional<LoggedEvent>& failed);
  LogItem take_management(LogItem item, LoggedEvent& event);
  void refuse_two_traps(const LoggedEvent& first, const LoggedEvent& second);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Deliveries& deliveries_;
  SystemManagement& management_;
  Resets& resets_;
};

}  // namespace citcat::monitor
