#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "events/archive/recording_file.h"
#include "replay/session/replay_report.h"

namespace citcat {

class ReplaySession;

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

/// The verdict of a session that ended with `report`.
DigestVerdict digest_verdict_of(ReplaySession& session, const ReplayReport& report,
                                const RecordingFile& file);
/// As `verify --json` prints it.
nlohmann::ordered_json digest_verdict_json(const DigestVerdict& verdict, const RecordingFile& file);
/// Replays up to the last digest. Throws UsageError when the archive has no digests.
DigestVerdict verify_digests(const RecordingFile& file, const Console& console);

/// `verify` for an archive without evidence: replays, prints the verdict, says whether it matched
/// and, where it did not, when another engine made the digests.
ExitCode run_digest_verify(const RecordingFile& file, bool json, const Console& console);

}  // namespace citcat
