#pragma once
// A replay as the commands make it, with its comparison and what the user sees meanwhile.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "events/archive/recording_file.h"
#include "replay/session/checkpoints.h"
#include "replay/session/end_sink.h"
#include "replay/session/replayer.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/verifier.h"

namespace citcat {

struct ReplayRunOptions {
  std::uint64_t to = ~std::uint64_t{0};
  bool check = true;        ///< compare with the evidence
  ComparisonPolicy policy;  ///< what the recording waives is taken from it
  /// Compare plainly first (VerifierOptions::plain), and once more from the beginning where that
  /// does not suffice: run() does that by itself, and a trace told to must have `start_over`; who
  /// calls run_to() and end() has to do it (Verifier::plain()).
  bool plain_first = false;
  /// Forgets what the trace was told, and returns the one to tell to instead.
  std::function<Sink*()> start_over;
  /// Called with each machine that the trace is going to be told of, before it runs; may be empty.
  std::function<void(const Machine&)> machine_made;
  /// Predict the traffic of this cache; null: of none. Only with `check`, from the beginning.
  const CacheDescriptor* cache = nullptr;
  /// Begin at this checkpoint, or at the beginning of the run with checkpoints. The evidence is
  /// then not compared: it was when they were taken, and those on the way must agree.
  std::optional<Checkpoints::Start> start;
  const Checkpoints* checkpoints = nullptr;  ///< of `start`
};

/// One replay as the commands make it: recording, evidence, verifier and progress line together.
class ReplayRun {
 public:
  /// `trace` may be null. All arguments must outlive the object.
  ReplayRun(const RecordingFile& file, Sink* trace, const ReplayRunOptions& options,
            const Console& console);
  ReplayRun(const ReplayRun&) = delete;
  ReplayRun& operator=(const ReplayRun&) = delete;

  /// Replays; what is left of the evidence at the end counts as a divergence.
  ReplayReport run();
  /// Makes it a replay from another checkpoint up to `to`, for another run(); only where it was one
  /// from a checkpoint before. What was translated is kept where it can be.
  void go_to(const Checkpoints::Start& start, std::uint64_t to);
  /// Replays up to an instruction and may be called again; says nothing of what is left.
  ReplayReport run_to(std::uint64_t to) { return replayer_->run_to(to); }
  /// What run() would have returned after run_to() gave `report` and there is no more to replay.
  ReplayReport end(ReplayReport report);
  const Replayer& replayer() const { return *replayer_; }
  Position position() { return replayer_->machine().position(); }
  /// Compares final memory after run(). A captured final image may be younger than the last
  /// transaction on the bus: the replay then goes on, as long as nothing happens that the bus would
  /// have shown, until its memory is that of the image.
  FinalMemory compare_final(const MemoryImage* captured);
  /// Results so far that implementations compute differently (x87 transcendentals, RCPPS ...).
  std::uint64_t model_specific_results() { return replayer_->machine().model_specific_results(); }
  /// The instruction that gave the first of them, as text: position, address, disassembly.
  std::string first_model_specific();
  /// Null when no cache was asked for.
  const CacheCheck* cache() const { return cache_.get(); }
  /// Only when checking.
  const Verifier& verifier() const { return *verifier_; }

 private:
  void set_up(bool plain);
  std::optional<Position> end_within_repeat() const;
  ReplayReport run_carefully();
  ReplayReport run_from_checkpoint();

  const RecordingFile& file_;
  Sink* trace_;
  ReplayRunOptions options_;
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<CacheCheck> cache_;
  std::optional<EndSink> end_;
  std::unique_ptr<AdoptionSink> adoptions_;
  std::optional<SinkList> sinks_;
  Progress progress_;
  std::unique_ptr<Replayer> replayer_;
  std::optional<Checkpoints::Loaded> loaded_;  ///< of `options_.start`
};

/// Null when there is none.
nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence);
std::vector<std::string> divergence_lines(const Divergence& divergence);

}  // namespace citcat
