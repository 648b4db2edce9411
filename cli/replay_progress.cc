#include "cli/replay_progress.h"

#include <fmt/format.h>

#include <memory>

#include "cli/interrupt.h"

namespace citcat {

std::function<void(Position)> replay_progress(const RecordingFile& file, const Console& console) {
  // Not make_shared: a progress line can be neither copied nor moved.
  const std::shared_ptr<Progress> line(new Progress(
      console.progress("replaying", "instructions", file.recording().instructions.value_or(0))));
  return [line](Position now) {
    check_interrupt();
    // An instruction may go on for thousands of millions of iterations.
    line->show(now.instruction,
               now.iteration == 0 ? "" : fmt::format("iteration {} of a REP", now.iteration));
  };
}

}  // namespace citcat
