#include "cli/commands/slim_run.h"

#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <utility>

#include "cli/digest_verify.h"
#include "cli/placed_recording.h"
#include "cli/replay_progress.h"
#include "events/archive/container.h"
#include "events/derive/event_order.h"
#include "events/derive/external_writes.h"
#include "formats/io/error.h"
#include "replay/run/replay_session.h"
#include "replay/run/run_outline.h"
#include "replay/session/digest_sink.h"
#include "replay/session/replayer.h"
#include "replay/session/run_end.h"

namespace citcat {
namespace {

/// A recording like `from`, ready for an archive without evidence.
Recording copy_for_slim(const Recording& from, const SlimRun& verified, bool merge) {
  Recording copy = from.clone();
  if (merge) copy.external_writes = merge_external_writes(from.external_writes);
  // Where the evidence ended is known from now on by count.
  copy.instructions = last_stop(verified.end, ~std::uint64_t{0});
  copy.adoptions = verified.adoptions;
  copy.end.reset();
  // Within a REP, or within the instruction that shuts the processor down.
  const bool shuts_down = verified.shut_down || from.end == verified.end;
  if (verified.end.iteration != 0 || shuts_down) copy.end = verified.end;
  number_events_by_order(copy);
  return copy;
}

/// Throws UsageError when the evidence does not confirm the recording.
SlimRun verified_run(const RecordingFile& file, const Console& console) {
  std::optional<DigestSink> sink;
  SessionOptions options;
  options.plain_first = true;
  options.start_over = [&sink] { return &sink.emplace(); };
  options.progress = replay_progress(file, console);
  ReplaySession run(file, options.start_over(), options);
  const ReplayReport report = run.run();
  if (report.end != ReplayReport::End::complete) {
    throw UsageError(file.container().path() +
                     " does not replay to its end as its evidence shows: only a verified recording "
                     "can do without it (see citcat verify)");
  }
  return {report.instructions, run.adoptions(), sink->finish(report.instructions), run.position(),
          run.machine().shut_down()};
}

RecordingFileOptions lean_options() {
  RecordingFileOptions options;
  options.evidence = EvidenceMode::digests;
  options.lean = true;
  return options;
}

/// A recording without evidence, written by a thread of its own: to make it small takes a good part
/// of the time that a replay of it does.
class LeanArchive {
 public:
  LeanArchive(const std::string& path, Recording recording)
      : recording_(std::move(recording)), writer_(path, lean_options()) {
    written_ = std::async(std::launch::async, [this] { writer_.add(recording_); });
  }
  /// Without it, nothing remains.
  void finish(const std::vector<ReplayDigest>& digests, const std::vector<SymbolModule>& symbols) {
    written_.get();
    writer_.add_digests(digests);
    writer_.add_symbols(symbols);
    writer_.close();
  }

 private:
  Recording recording_;
  RecordingFileWriter writer_;
  std::future<void> written_;  ///< waited for before the others go
};

/// Writes it to be replayed once.
void write_trial(const std::string& path, const Recording& recording) {
  RecordingFileOptions options = lean_options();
  options.passing = true;
  RecordingFileWriter(path, options).finish(recording);
}

/// Digests of a replay of `lean`, which has neither evidence nor digests, and how it went.
struct LeanRun {
  std::optional<RunOutline> outline;
  std::vector<ReplayDigest> digests;
};

/// Nobody waits for the replay any more.
struct NotWanted {};

/// `progress` may throw NotWanted, wherever the replay is: the result is without an outline then.
LeanRun replay_lean(const RecordingFile& lean, const std::atomic<bool>& stop,
                    std::function<void(Position)> progress) {
  DigestSink sink;
  SessionOptions options;
  options.check = false;
  options.progress = std::move(progress);
  ReplaySession run(lean, &sink, options);
  try {
    LeanRun result{run_in_outline(run, stop), {}};
    if (result.outline) result.digests = sink.finish(result.outline->end.instruction);
    return result;
  } catch (const NotWanted&) {
    return {};
  }
}

/// Two replays that ran at the same time.
struct SideBySide {
  std::optional<RunOutline> verified;
  std::vector<Adoption> adoptions;  ///< what that one took from the evidence
  LeanRun lean;                     ///< only where it took nothing
};

/// Verifies `full` and at the same time, in another thread, replays `lean`, which is the same
/// without evidence.
SideBySide run_side_by_side(const RecordingFile& full, const RecordingFile& lean,
                            const Console& console) {
  std::atomic<bool> stop = false;
  std::future<LeanRun> other = std::async(std::launch::async, [&lean, &stop] {
    // One REP may take longer than anybody waits.
    return replay_lean(lean, stop, [&stop](Position) {
      if (stop) throw NotWanted{};
    });
  });
  SideBySide result;
  try {
    SessionOptions options;
    options.plain_first = true;
    options.progress = replay_progress(full, console);
    ReplaySession run(full, nullptr, options);
    result.verified = run_in_outline(run, stop);
    result.adoptions = run.adoptions();
  } catch (...) {
    stop = true;  // the other is not waited for to its end
    throw;
  }
  stop = !result.verified || !result.adoptions.empty();
  result.lean = other.get();
  return result;
}

/// The two replays at once; where the first took something from the evidence, the second once more
/// with that. nullopt where that is not possible, or the two are not the same run.
std::optional<SlimRun> write_at_once(const RecordingFile& full, const StagedOutput& output,
                                     const std::vector<SymbolModule>& symbols,
                                     const Console& console) {
  const Recording& recording = full.recording();
  if (!recording.instructions || !recording.adoptions.empty()) return std::nullopt;
  const std::string trial = output.beside("trial.citcat");
  // What is replayed is what is written.
  std::optional<LeanArchive> archive;
  const auto begin = [&](const SlimRun& run) {
    Recording slim = copy_for_slim(recording, run, true);
    write_trial(trial, slim);
    archive.emplace(output.path(), std::move(slim));
  };
  SlimRun run{*recording.instructions, {}, {}, {*recording.instructions, 0}};
  begin(run);
  SideBySide both = run_side_by_side(full, RecordingFile::open(trial), console);
  if (!both.verified || both.verified->end != run.end) return std::nullopt;
  if (!both.adoptions.empty()) {
    run.adoptions = std::move(both.adoptions);
    begin(run);
    const std::atomic<bool> stop = false;
    const RecordingFile again = RecordingFile::open(trial);
    both.lean = replay_lean(again, stop, replay_progress(again, console));
  }
  if (both.lean.outline != both.verified) return std::nullopt;
  run.digests = std::move(both.lean.digests);
  archive->finish(run.digests, symbols);
  return run;
}

/// Writes to `path` what a replay of `full`, `verified`, leaves of it, in a way in which a replay
/// of that is the same run; returns what was written.
Recording write_confirmed(const RecordingFile& full, const SlimRun& verified,
                          const std::string& path, const std::vector<SymbolModule>& symbols,
                          const Console& console) {
  for (const bool merge : {true, false}) {
    LeanArchive(path, copy_for_slim(full.recording(), verified, merge))
        .finish(verified.digests, symbols);
    if (verify_digests(RecordingFile::open(path), console).match()) {
      return copy_for_slim(full.recording(), verified, merge);
    }
  }
  // The replay of the full recording could consult the evidence; this one cannot.
  throw UsageError(full.container().path() +
                   " needs its evidence to replay: without it the replay runs differently");
}

/// First the one, then the other with what the first had to take from the evidence.
SlimRun write_in_turn(const RecordingFile& full, const StagedOutput& output,
                      const std::vector<SymbolModule>& symbols, const Console& console) {
  SlimRun verified = verified_run(full, console);
  write_confirmed(full, verified, output.path(), symbols, console);
  return verified;
}

}  // namespace

SlimRun write_slim(const RecordingFile& full, const StagedOutput& output, const Console& console) {
  const std::vector<SymbolModule> symbols = full.symbols();
  if (auto run = write_at_once(full, output, symbols, console)) return *run;
  return write_in_turn(full, output, symbols, console);
}

SlimRun write_slim_of_all(const std::string& path, std::size_t recordings,
                          const StagedOutput& output, const Console& console) {
  SlimRun all;
  RecordingFileWriter writer(output.path(), lean_options());
  const std::string trial = output.beside("trial.citcat");
  for (std::size_t i = 0; i < recordings; ++i) {
    const PlacedRecording full = open_placed(path + "@" + std::to_string(i), console);
    const SlimRun run = verified_run(full.file, console);
    const Recording slim = write_confirmed(full.file, run, trial, {}, console);
    writer.select(i);
    writer.add(slim, run.digests);
    writer.add_symbols(full.file.symbols());
    all.instructions += run.instructions;
    all.adoptions.insert(all.adoptions.end(), run.adoptions.begin(), run.adoptions.end());
    all.digests.insert(all.digests.end(), run.digests.begin(), run.digests.end());
  }
  writer.close();
  return all;
}

}  // namespace citcat
