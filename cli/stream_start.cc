#include "cli/stream_start.h"

#include "cli/replay_progress.h"
#include "formats/io/atomic_file.h"
#include "replay/run/verified_run.h"
#include "replay/session/checkpoints.h"

namespace citcat {

bool can_be_taken_back(const std::string& path) {
  return path.empty() || path == "/dev/null" || output_kind(path) == OutputKind::replaced;
}

bool compares_as_usual(const SessionOptions& run) {
  return run.check && run.path == ExecutionPath::blocks && !run.policy.strict &&
         run.policy.waived.empty();
}

void verify_first(const RecordingFile& file, const std::string& recording, bool remember,
                  SessionOptions& run, std::optional<CheckpointRun>& verified,
                  const Console& console) {
  // The careful comparison of so many is cheaper.
  constexpr std::uint64_t kFewInstructions = std::uint64_t{1} << 21;
  run.start = run.checkpoints->beginning();
  if (run.start || run.to <= kFewInstructions) return;
  CheckpointedRun whole = verify_once(file, recording, !remember, replay_progress(file, console));
  if (!whole.sure()) return;
  verified = std::move(whole.run);
  run.verified = &*verified;
}

}  // namespace citcat
