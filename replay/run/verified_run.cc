#include "replay/run/verified_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "events/archive/container.h"
#include "formats/io/error.h"
#include "formats/io/log.h"
#include "formats/io/once_input.h"
#include "replay/run/replay_session.h"

namespace citcat {
namespace {

const Logger session_log("session");

/// The least that checkpoints nobody asked for may take; an archive is of this size soon.
constexpr std::uint64_t kLeastRoom = std::uint64_t{1} << 20;

}  // namespace

CheckpointedRun run_with_checkpoints(const RecordingFile& file,
                                     const CheckpointTaker::Options& taking,
                                     const std::function<void(Position)>& progress) {
  SessionOptions options;
  options.plain_first = true;
  options.progress = progress;
  ReplaySession session(file, nullptr, options);
  CheckpointedRun result{{}, {}, {}, CheckpointTaker(file.recording(), taking)};
  result.report = session.run(result.taker);
  result.differs_before = session.differs_before();
  result.run = {replay_identity(), session.position(), session.adoptions()};
  return result;
}

CheckpointedRun verify_once(const RecordingFile& file, const std::string& path, bool placed_now,
                            const std::function<void(Position)>& progress) {
  if (session_log.at(LogLevel::info))
    session_log.write("verified once, to be streamed from then on");
  CheckpointTaker::Options options;
  options.max_bytes = std::clamp(file.container().file_bytes() / 8, kLeastRoom, options.max_bytes);
  CheckpointedRun result = run_with_checkpoints(file, options, progress);
  const bool lasting = !placed_now && file.placements().empty();  // Checkpoints::beginning()
  if (!result.sure() || !lasting || path == "-" || is_once_input(path)) return result;
  try {
    result.taker.append_to(path, result.run.end, result.run.adoptions);
  } catch (const Error& error) {
    // Somebody else's archive, or one that another process adds to: verified it is all the same.
    if (session_log.at(LogLevel::info)) {
      session_log.write(
          fmt::format("the result of the verification is not kept: {}", error.what()));
    }
  }
  return result;
}

}  // namespace citcat
