#pragma once
// The way into a handler of protected or long mode, shown on the bus: what the processor reads and
// pushes on the way.

#include <cstdint>
#include <optional>

#include "monitor/delivery/correction.h"
#include "monitor/delivery/way_in.h"
#include "monitor/processor/observation.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class HandlerEntry : private WayInMemory {
 public:
  HandlerEntry(Observation& seen, Units& units) : seen_(seen), cpu_(seen.cpu), units_(units) {}

  /// The frame is in RAM already. `second`: the exception that ended the delivery, if one did. What
  /// a processor would push of it is noted there. `own`: ICEBP in flight has raised it.
  void deliver(const LoggedEvent& event, LoggedEvent* second, const Correction& correction,
               bool own);

 private:
  std::uint64_t read_for_processor(std::uint64_t linear, unsigned size) override;
  void end_by_second(const LoggedEvent& event, const WayIn& way, LoggedEvent& second,
                     const std::optional<Refusal>& refusal, const Correction& correction, bool own);
  void push_frame(const LoggedEvent& event, const WayIn& way, const Correction& correction,
                  bool own, std::optional<std::uint64_t> faulting);
  void refuse_wrong_delivery(const LoggedEvent& event, const Refusal& refusal);
  void refuse_wrong_gate(const WayIn& way);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Units& units_;
};

}  // namespace citcat::monitor
