#pragma once
// The outline of a run, which shows cheaply whether two replays of the same input are the same:
// registers from time to time, and everything at the end.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "events/position.h"
#include "formats/io/hash.h"

namespace citcat {

class ReplaySession;

struct RunOutline {
  /// Instructions between two looks at the registers.
  static constexpr std::uint64_t kInterval = std::uint64_t{1} << 20;

  Position end;  ///< the first instruction, or iteration, that was not replayed
  std::uint64_t interrupts = 0, exceptions = 0, io_reads = 0, io_writes = 0;
  std::vector<std::uint64_t> registers;  ///< a hash at every interval
  Hash128 state;                         ///< of registers and memory at the end
  bool operator==(const RunOutline&) const = default;
};

/// Replays `session`, which is at its beginning, to its end; nullopt where it diverges or
/// `stop` becomes true on the way.
std::optional<RunOutline> run_in_outline(ReplaySession& session, const std::atomic<bool>& stop);

}  // namespace citcat
