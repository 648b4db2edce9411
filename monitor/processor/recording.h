#pragma once
// One processor's recording as a whole: whether it goes on, how far it got, why it ended.

#include <cstdint>
#include <string>

#include "monitor/processor/flight.h"
#include "monitor/processor/observed_processor.h"

namespace citcat::monitor {

/// Counts of a recording.
struct Totals {
  std::uint64_t instructions = 0, interrupts = 0, exceptions = 0, software = 0, external = 0,
                walks = 0, disagreements = 0;
  void add(const Totals& more);
  void say(const std::string& reason, RecordSink& sink) const;
};

class Recording {
 public:
  Recording(ObservedProcessor& cpu, Flight& flight) : cpu_(cpu), flight_(flight) {}

  bool active() const { return active_; }
  void begin() { active_ = true; }
  /// Ends it, with the reason why it cannot go on.
  void give_up(const std::string& why);
  /// Ends it; nothing more is sent. Records say how far the processor came, unless the reason is
  /// "error": what then went on last is not worth a replay.
  void end(const std::string& reason);
  /// The same, without a word of the totals.
  void close(const std::string& reason);
  /// The following records are of the instruction in flight.
  void set_position() { cpu_.sink.set_position(flight_.completed, flight_.iterations); }

  enum class Delivered : std::uint8_t { interrupt, exception, software };
  void count(Delivered what) { ++delivered_[static_cast<unsigned>(what)]; }
  Totals totals() const;

 private:
  ObservedProcessor& cpu_;
  Flight& flight_;
  bool active_ = false;
  std::array<std::uint64_t, 3> delivered_{};
};

}  // namespace citcat::monitor
