#pragma once

#include <optional>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "events/archive/recording_file.h"
#include "replay/session/replay_report.h"

namespace citcat {

/// A replay of an archive without evidence, compared with the digests it holds.
struct DigestVerdict {
  ReplayReport report;
  std::uint64_t checked = 0;  ///< digests compared
  /// Instructions of the first digest that differs: the replay went another way before it.
  std::optional<std::uint64_t> differs_before;
  bool match() const {
    return report.end != ReplayReport::End::diverged && checked != 0 && !differs_before;
  }
};

/// Replays up to the last digest. Throws UsageError when the archive has no digests.
DigestVerdict verify_digests(const RecordingFile& file, const Console& console);

/// `verify` for an archive without evidence: replays, prints the verdict, says whether it matched
/// and, where it did not, when another engine made the digests.
ExitCode run_digest_verify(const RecordingFile& file, bool json, const Console& console);

}  // namespace citcat
