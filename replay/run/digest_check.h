#pragma once
// Compares a replay with the digests of an archive that holds no evidence.

#include <cstdint>
#include <optional>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/session/digest_sink.h"

namespace citcat {

/// Does nothing for an archive with evidence.
class DigestCheck {
 public:
  /// `check`: whether to compare. Throws UsageError if that is wanted and the archive has neither
  /// evidence nor digests. `file` must outlive the object.
  DigestCheck(const RecordingFile& file, bool check);

  bool needed() const { return needed_; }
  /// Where a replay up to `to` must stop: at the last digest if that is earlier.
  std::uint64_t stop(std::uint64_t to) const;
  /// Computes the digests; must observe the replay from its beginning.
  Observer& observer() { return sink_; }
  /// After a replay of `instructions`: the instruction of the first digest that differs, if one
  /// does. Asked again it says the same.
  std::optional<std::uint64_t> compare(std::uint64_t instructions);
  /// How many digests compare() has looked at.
  std::uint64_t checked() const { return checked_; }

 private:
  const RecordingFile& file_;
  DigestSink sink_;
  bool needed_ = false, compared_ = false;
  std::optional<std::uint64_t> differs_;
  std::uint64_t checked_ = 0;
};

}  // namespace citcat
