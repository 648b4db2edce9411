#include "cli/compare/compared_recording.h"

#include <fmt/format.h>

#include "cli/divergence_report.h"
#include "cli/replay_progress.h"
#include "events/capture_time.h"
#include "tools/guest/recording_symbols.h"

namespace citcat {

ComparedRecording::ComparedRecording(const std::string& path, bool check, const Console& console)
    : placed_(open_placed(path, console)), symbols_(tools::known_symbols(placed_.file, {})) {
  sql::SourceOptions options;
  options.path = path;
  options.placed_now = placed_.search.has_value();
  options.check = check;
  options.progress = replay_progress(placed_.file, console);
  source_ = std::make_unique<sql::RowSource>(placed_.file, symbols_, std::move(options));
}

bool ComparedRecording::warn(const Console& console) const {
  const auto& contradiction = source_->contradiction();
  if (!contradiction) return false;
  if (contradiction->divergence) {
    const double hz = clock_rate(placed_.file.recording().provenance);
    for (const std::string& line : divergence_lines(*contradiction->divergence, hz)) {
      console.warn(source_->path() + ": " + line);
    }
  }
  if (contradiction->differs_before) {
    console.warn(fmt::format("{}: the replay went another way before instruction {}",
                             source_->path(), *contradiction->differs_before));
  }
  return true;
}

}  // namespace citcat
