#pragma once
// How strictly a replay is compared with the bus.

#include <cstdint>
#include <vector>

namespace citcat {

/// In a capture without counts: the number of instructions that a replay may execute while it waits
/// for something that the bus has shown, such as the bytes of a write-back after the last event, or
/// the branch of a branch trace message.
inline constexpr std::uint64_t kMaxIdle = 10'000'000;

struct ComparisonPolicy {
  bool strict = false;  ///< adopt no result from the bus
  /// Accept a change of one bit by another bus master. Without this option a change that is
  /// alone (see LoneChanges) is a divergence, because a wrongly captured bit looks the same.
  bool bit_changes = false;
  /// Transactions that somebody has reviewed, ascending: captured writes whose bytes replace those
  /// that the replay stored, and reads that show a change of a single bit by another bus master.
  std::vector<std::uint64_t> waived;
  /// Reads, ascending, that show a change by another bus master which the recording also reports in
  /// another way: if a single bit changed, it was not captured wrongly.
  std::vector<std::uint64_t> told_changes;
};

}  // namespace citcat
