#pragma once
// Registers that no dump had, and the positions from which they are known because the program has
// loaded them.

#include <cstdint>
#include <map>
#include <string>

#include "events/recording.h"
#include "replay/session/moment.h"

namespace citcat {

class KnownRegisters {
 public:
  /// Replays the beginning of the recording, as far as there is something to be found out: to where
  /// each of its unknown registers is first seen to hold something else, kReach steps at most. A
  /// register that is loaded with what it was taken to hold stays unknown until it changes.
  explicit KnownRegisters(const Recording& recording);

  static constexpr std::uint64_t kReach = 100'000;

  /// Takes the registers that are known at `moment` out of `state.unknown`.
  void settle(CpuState& state, Moment moment) const;

 private:
  std::map<std::string, Moment> known_from_;
};

}  // namespace citcat
