#pragma once
// The registers of a processor without a state dump, at an interrupt: the interrupt itself pushes
// FLAGS, CS and IP, its handler saves others, and what is left shows itself in the first address or
// value on the bus that depends on it. docs/placement.md says how each is found.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "events/hint.h"
#include "events/recording.h"
#include "replay/session/replayer.h"
#include "replay/session/time_budget.h"

namespace citcat {

/// How a register's value is known.
enum class RegisterSource : std::uint8_t {
  frame,    ///< the interrupt pushed it
  saved,    ///< the handler stored it before it changed it
  solved,   ///< an address or a value on the bus depends on it
  assumed,  ///< one of several values that give the same bus traffic, and it may show
  free,     ///< nothing in the recording depends on it
  given,    ///< told beforehand
};
const char* register_source_name(RegisterSource source);

struct RecoveredRegister {
  std::string name;
  std::uint64_t value = 0;
  RegisterSource source = RegisterSource::free;
  std::uint64_t transaction = kNoTransaction;  ///< that showed it first
};

struct RecoveredState {
  /// The one given, with this state, what memory must have held besides, and the positions found
  /// for interrupts without a count.
  Recording recording;
  CpuState state;  ///< `unknown` names the registers that are free
  std::vector<RecoveredRegister> registers;
  /// What memory must have held besides what the capture shows, of kind Hint::Kind::memory.
  std::vector<Hint> memory;
  /// Where no value of the registers left gives what the bus shows. The state is then not to be
  /// used.
  std::optional<Divergence> divergence;
  std::string given_up;       ///< why it ended before it was through (TimeBudget::text())
  std::uint64_t replays = 0;  ///< made to find all this
};

/// Recovers the state just before the first interrupt of `recording`, at which it must begin.
/// For processors without a cache, in real mode, in protected mode with 32-bit gates or in long
/// mode; throws UsageError for others and where the evidence does not show an interrupt's frame, or
/// the page tables in use. Of a processor with long mode the registers that `recording` has, and
/// does not list as unknown, are taken from there; it throws UsageError where the interrupt shows
/// others. When `time` is spent, what was found so far is the answer, with a divergence that
/// says so; it may be null.
RecoveredState recover_state(Recording recording, const EvidenceSource& evidence,
                             TimeBudget* time = nullptr);

}  // namespace citcat
