#pragma once
// How strictly a replay is compared with the bus.

#include <cstdint>
#include <vector>

namespace citcat {

/// Instructions that a replay may make while something of a capture without counts still waits: a
/// write-back for its bytes behind the last event, a branch trace message for its branch.
inline constexpr std::uint64_t kMaxIdle = 10'000'000;

struct ComparisonPolicy {
  bool strict = false;  ///< take no result over from the bus (adopt nothing)
  /// Take a change of one bit by another bus master for what it says it is. Without, one that
  /// stands alone (see LoneChanges) is a divergence: it is what a wrongly captured bit looks like.
  bool bit_changes = false;
  /// Transactions that somebody has reviewed, ascending: captured writes whose bytes are taken over
  /// whatever the replay stored, and reads that showed another bus master change a single bit.
  std::vector<std::uint64_t> waived;
  /// Reads, ascending, that show a change by another bus master of which the recording tells
  /// besides: a single bit of it is no wrongly captured one.
  std::vector<std::uint64_t> told_changes;
};

}  // namespace citcat
