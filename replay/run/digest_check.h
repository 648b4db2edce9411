#pragma once
// Compares a replay with the digests of an archive that holds no evidence.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/session/digest_sink.h"

namespace citcat {

/// Idle for an archive with evidence.
class DigestCheck {
 public:
  /// `check`: a comparison is asked for. Throws UsageError where the archive then holds neither
  /// evidence nor digests. `file` must outlive the object.
  DigestCheck(const RecordingFile& file, bool check);

  bool needed() const { return needed_; }
  /// Where a replay that is to go to `to` has to end: at the latest with the last digest.
  std::uint64_t stop(std::uint64_t to) const;
  /// To be told what the replay does, from its beginning.
  Observer& observer() { return sink_; }
  /// After the replay of `instructions`: where the first digest up to there differs, if one does.
  std::optional<std::uint64_t> compare(std::uint64_t instructions);
  /// Digests that compare() looked at.
  std::uint64_t checked() const { return checked_; }

 private:
  const RecordingFile& file_;
  DigestSink sink_;
  bool needed_ = false;
  std::uint64_t checked_ = 0;
};

}  // namespace citcat
