#pragma once

#include <optional>
#include <vector>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/replay_run.h"
#include "events/archive/recording_file.h"
#include "replay/session/digest_sink.h"
#include "replay/session/replayer.h"

namespace citcat {

/// Compares a replay with the digests of an archive that holds no evidence; idle for any other.
class DigestCheck {
 public:
  /// Sets `options` for such an archive: nothing to check with, stop at the last digest. Throws
  /// UsageError when it holds no digests either and a check is asked for.
  DigestCheck(const RecordingFile& file, ReplayRunOptions& options);

  bool needed() const { return needed_; }
  /// To be told what the replay does.
  Sink& sink() { return sink_; }
  /// After the replay of `instructions`: where the first digest up to there differs, if one does.
  std::optional<std::uint64_t> compare(std::uint64_t instructions);
  /// Digests that compare() looked at.
  std::uint64_t checked() const { return checked_; }

 private:
  const std::vector<ReplayDigest>& expected_;
  DigestSink sink_;
  bool needed_ = false;
  std::uint64_t checked_ = 0;
};

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
