#include "cli/replay_progress.h"

#include <memory>

namespace citcat {

std::function<void(Position)> replay_progress(const RecordingFile& file, const Console& console) {
  // Not make_shared: a progress line can be neither copied nor moved.
  const std::shared_ptr<Progress> line(new Progress(
      console.progress("replaying", "instructions", file.recording().instructions.value_or(0))));
  return [line](Position now) { line->update(now.instruction); };
}

}  // namespace citcat
