#pragma once
// Real mode: the frames that interrupts and exceptions push, through the vector table at its base.
// The emulator logs only their vectors, and nothing about INT n and NMIs: everything else comes
// from the frames that were pushed.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "monitor/processor/observation.h"
#include "monitor/units/units.h"

namespace citcat::monitor {

class RealModeFrames {
 public:
  RealModeFrames(Observation& seen, Units& units)
      : seen_(seen), cpu_(seen.cpu), flight_(seen.flight), units_(units) {}

  /// What the INT n in flight has delivered, if it has: INTO may go on, and an INT n whose vector
  /// lies beyond the table's limit has faulted. `later_events` have been delivered since it
  /// started.
  std::optional<LoggedEvent> of_software(std::size_t later_events);
  /// Whether an NMI is the last that has been delivered, after `events`. Nothing tells of it: the
  /// handler of vector 2 is about to run, with a frame as an NMI pushes it, which leads to where
  /// the program would have gone on.
  bool nmi_taken(std::span<const LoggedEvent> events);
  /// The state before the delivery, by what it pushed and by what it has left alone.
  /// `frames_above`: of those that have been delivered on top of it.
  void complete(LoggedEvent& event, unsigned frames_above);
  /// What the processor reads and pushes (Intel SDM vol. 3, 20.1.4): a vector, then FLAGS, CS and
  /// IP. `passed_bytes`: of a Correction.
  void push(const LoggedEvent& event, unsigned passed_bytes);
  /// Ends the recording if a program goes on elsewhere for no known reason.
  void refuse_unexplained();

 private:
  bool software_interrupt_taken(std::size_t later_events);
  std::uint32_t vector(unsigned number);
  bool goes_on_at(std::uint32_t place);

  Observation& seen_;
  ObservedProcessor& cpu_;
  Flight& flight_;
  Units& units_;
};

}  // namespace citcat::monitor
