#pragma once
// The basis of a verified recording: how much of the evidence was compared, and what had to be
// taken on trust.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/run/confidence.h"
#include "replay/verify/comparison_result.h"

namespace citcat {

struct Accounting {
  std::uint64_t transactions = 0;  ///< in the evidence
  /// How many of these agreed with the replay: all that were compared, and the interrupts
  /// delivered.
  std::uint64_t compared = 0;
  std::uint64_t evidence_bytes = 0;  ///< of writes and write-backs compared
  std::uint64_t instructions = 0;

  /// Instructions until the routine in which the recording begins returned: the driver's, where a
  /// driver dumped the state. Nothing where it did not return within the first 200,000.
  std::optional<std::uint64_t> start_routine;
  /// Lines that the declared cache holds, 0 where there is none or no model of it; and the
  /// instruction at which as many different lines had been filled. Until then misses may be due to
  /// the cache having been emptied, not to the program. Nothing where it was not reached.
  std::uint64_t cache_lines = 0;
  std::optional<std::uint64_t> refilled_at;

  std::uint64_t image_bytes = 0;               ///< memory known from the first read of it
  std::vector<std::string> assumed_registers;  ///< that nobody dumped

  std::uint64_t interrupts = 0;  ///< all
  std::uint64_t counted = 0;     ///< of these, placed by the capture's own count
  std::uint64_t unique = 0, equivalent = 0, ambiguous = 0, unplaced = 0;  ///< by the search
  std::uint64_t external_writes = 0;
  /// How many of these lie right before the read that showed them only by the order of the bus.
  std::uint64_t external_unplaced = 0;
  std::uint64_t port_reads = 0;
  std::uint64_t internal_reads = 0;  ///< values that cross no bus, given by a monitor
  std::uint64_t hints = 0;           ///< corrections by hand
  /// What the trace depends on and nothing that was compared constrains.
  std::vector<UnconstrainedInput> unconstrained;
  /// The origins of the instruction that was asked about, where there is one.
  std::optional<LineOrigins> line;
};

/// Accounts for the verification of `file`, an archive with evidence whose interrupts all have
/// positions: it compared `totals` over `instructions`. Replays the recording once more,
/// instruction by instruction, and reads the evidence twice; with `line`, the instruction whose
/// line of the trace is in question, it does both once more.
Accounting account(const RecordingFile& file, const VerifyTotals& totals,
                   std::uint64_t instructions, std::optional<std::uint64_t> line = std::nullopt);

}  // namespace citcat
