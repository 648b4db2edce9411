#include "replay/run/digest_check.h"

#include <algorithm>
#include <utility>

#include "events/archive/container.h"
#include "formats/io/error.h"
#include "replay/session/run_end.h"

namespace citcat {

DigestCheck::DigestCheck(const RecordingFile& file, bool check) : file_(file) {
  if (file.meta().evidence == EvidenceMode::full) return;
  needed_ = check;
  if (needed_ && file.digests().empty()) {
    throw UsageError(file.container().path() + " holds neither evidence nor digests");
  }
}

std::uint64_t DigestCheck::stop(std::uint64_t to) const {
  if (file_.meta().evidence == EvidenceMode::full || file_.digests().empty()) return to;
  const Position last{file_.digests().back().instruction, 0};
  const std::optional<Position>& end = file_.recording().end;
  // Kept without an iteration it is that of a shutdown, within the instruction there.
  if (end && end->iteration == 0) return std::min(to, end->instruction + 1);
  return last_stop(end.value_or(last), to);
}

std::optional<std::uint64_t> DigestCheck::compare(std::uint64_t instructions) {
  // The digests of a replay are taken once.
  if (!needed_ || std::exchange(compared_, true)) return differs_;
  const std::vector<ReplayDigest>& expected = file_.digests();
  differs_ = first_difference(expected, sink_.finish(instructions), instructions);
  // Compared were those up to the first difference, it among them.
  const std::uint64_t compared = differs_.value_or(instructions);
  checked_ = static_cast<std::uint64_t>(
      std::count_if(expected.begin(), expected.end(),
                    [compared](const ReplayDigest& d) { return d.instruction <= compared; }));
  return differs_;
}

}  // namespace citcat
