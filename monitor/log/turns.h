#pragma once
// Which of several processors an event in the emulator's log belongs to. The log names no
// processor, but it shows the descriptor tables, and each processor has its own once it uses
// interrupts.

#include <cstdint>
#include <optional>
#include <span>

#include "monitor/log/interrupt_log.h"

namespace citcat::monitor {

/// A processor that an event may be for.
struct Candidate {
  bool real_mode = false;
  bool waits = false;  ///< to be started: nothing is delivered to it
  std::uint64_t gdt_base = 0, task_base = 0;
};
Candidate candidate_of(const LoggedState& state, bool waits);

/// The number of the only one that the event can be of; nullopt where it may be of several, or of
/// none.
std::optional<unsigned> whose(const LoggedEvent& event, std::span<const Candidate> processors);

/// How many instructions a processor is given before the next one's turn: another number each time,
/// the same ones in each recording.
class TurnLength {
 public:
  std::uint64_t next() {
    // Knuth's linear congruential generator (The Art of Computer Programming, vol. 2, 3.3.4).
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return 1 + (seed_ >> 33) % kLongest;
  }

 private:
  static constexpr std::uint64_t kLongest = 400;
  std::uint64_t seed_ = 1;
};

}  // namespace citcat::monitor
