#pragma once
// One replay of a recording, with all that makes it right: comparison with the evidence or with the
// digests in its place, results taken over before, checkpoints, the place where the run ended.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "events/archive/recording_file.h"
#include "replay/run/digest_check.h"
#include "replay/session/adoptions.h"
#include "replay/session/checkpoints.h"
#include "replay/session/replayer.h"
#include "replay/session/rewindable_evidence.h"
#include "replay/verify/cache_check.h"
#include "replay/verify/comparison_policy.h"
#include "replay/verify/verifier.h"

namespace citcat {

struct SessionOptions {
  std::uint64_t to = ~std::uint64_t{0};  ///< first instruction not replayed
  bool check = true;                     ///< compare with the evidence, or with digests
  ComparisonPolicy policy;               ///< what the recording waives is taken from it
  /// Compare plainly first (VerifierOptions::plain), and once more from the beginning where that
  /// does not suffice: run() does that by itself; who calls run_to() and end() has to do it
  /// (Verifier::plain()). Of no effect for an observer without `start_over`.
  bool plain_first = false;
  /// Forgets what the observer was told, and returns the one to tell to instead.
  std::function<Observer*()> start_over;
  /// As in ReplayOptions.
  ExecutionPath path = ExecutionPath::blocks;
  /// Predict the traffic of this cache; null: of none. Only with `check`, from the beginning.
  const CacheDescriptor* cache = nullptr;
  /// How the captured processor fills its TLB, where observers follow its walks; nullopt: as that does
  /// which needs least. Not with `start`, whose TLB was filled otherwise, and not with `cache`.
  std::optional<WalkPolicy> walks;
  /// Begin at this checkpoint, or at the beginning of the run with checkpoints. The evidence is
  /// then not compared: it was when they were taken, and those on the way must agree.
  std::optional<Checkpoints::Start> start;
  const Checkpoints* checkpoints = nullptr;  ///< of `start`
  /// What comparing this recording gave (replay/run/verified_run.h): it is not compared again. Of no
  /// effect with `start`, which knows it too.
  std::optional<CheckpointRun> verified;
  std::function<void(Position)> progress;    ///< called now and then; may be empty
  /// checkpoint() and restore() are going to be used: evidence that was read is kept, and final
  /// memory is not compared. Not with `plain_first` or `cache`.
  bool rewindable = false;
  /// Sits where the evidence would be compared, in a session without comparison; may be null.
  BlockJudge* judge = nullptr;
};

class ReplaySession {
 public:
  /// `observer` may be null; it, `file` and what `options` points to must outlive the session.
  /// Interrupts of the recording must have their places (replay/infer/event_placer.h). Throws
  /// UsageError where the recording does not allow what is asked for.
  ReplaySession(const RecordingFile& file, Observer* observer, SessionOptions options);
  ReplaySession(const ReplaySession&) = delete;
  ReplaySession& operator=(const ReplaySession&) = delete;

  /// Replays to the end; what is left of the evidence there counts as a divergence. What digests
  /// say in place of evidence is no part of the report: ask digests().
  ReplayReport run();
  /// Makes it a replay from another checkpoint up to `to`, for another run(); only where it was one
  /// from a checkpoint before. What was translated is kept where it can be.
  void go_to(const Checkpoints::Start& start, std::uint64_t to);
  /// Replays up to an instruction, to() at the latest, and may be called again; says nothing of
  /// what is left of the evidence. Checkpoints on the way must agree.
  ReplayReport run_to(std::uint64_t to) { return run_to(Position{to, 0}); }
  /// The same, up to a boundary between two iterations.
  ReplayReport run_to(Position to);
  /// Where the replay stands, with its comparison, to come back to; for SessionOptions::rewindable.
  struct Checkpoint {
    Replayer::Checkpoint replayer;
    std::optional<Verifier::Checkpoint> verifier;  ///< where evidence is compared
    std::uint64_t evidence = 0;                    ///< transactions read
    std::optional<Checkpoints::Start> passed;
  };
  Checkpoint checkpoint() const;
  /// Of this session. The observer is not told.
  void restore(const Checkpoint& checkpoint);
  /// As Replayer::step(); of a session without comparison.
  ReplayReport step() { return replayer_->step(); }
  /// What a comparison of the same run has taken over from the bus so far, in the order of
  /// positions: it is made here, too, from the place on where the replay stands. Of a session
  /// without comparison that begins at the beginning.
  void take_over(std::vector<Adoption> adoptions);
  /// What run() would have returned after run_to() gave `report` and there is no more to replay.
  ReplayReport end(ReplayReport report);
  /// The first instruction that is not going to be replayed, as far as is known.
  std::uint64_t to() const;
  const Replayer& replayer() const { return *replayer_; }
  const Machine& machine() const { return replayer_->machine(); }
  /// For who changes what the replay computes on (registers by restore(), memory here), and no
  /// longer asks it for the run that was recorded.
  Memory& memory_to_change() { return replayer_->machine().memory(); }
  Position position() const { return replayer_->machine().position(); }
  /// Compares final memory after run(). A captured final image may be younger than the last
  /// transaction on the bus: the replay then goes on, as long as nothing happens that the bus would
  /// have shown, until its memory is that of the image.
  FinalMemory compare_final(const MemoryImage* captured);
  /// Results so far that implementations compute differently (x87 transcendentals, RCPPS ...).
  std::uint64_t model_specific_results() const {
    return replayer_->machine().model_specific_results();
  }
  /// The instruction that gave the first of them, as text: position, address, disassembly.
  std::string first_model_specific() const;
  /// Null when no cache was asked for.
  const CacheCheck* cache() const { return cache_.get(); }
  /// Null unless evidence is compared.
  const Verifier* verifier() const { return verifier_.get(); }
  /// Of an archive without evidence; to be asked after the replay.
  DigestCheck& digests() { return digests_; }

 private:
  void set_up(bool plain);
  void add_comparison(bool plain, Listeners& listeners);
  std::optional<Position> end_within_repeat() const;
  ReplayReport run_carefully();

  const RecordingFile& file_;
  Observer* observer_;
  SessionOptions options_;
  DigestCheck digests_;
  RewindableEvidence* evidence_ = nullptr;  ///< the verifier's, where it can be taken back
  std::unique_ptr<Verifier> verifier_;
  std::unique_ptr<CacheCheck> cache_;
  std::unique_ptr<Adoptions> adoptions_;
  std::unique_ptr<Replayer> replayer_;
  std::optional<Position> end_;                ///< within a REP: where the run ended
  std::optional<Checkpoints::Loaded> loaded_;  ///< of `options_.start`
  std::optional<Checkpoints::Start> passed_;   ///< the last checkpoint that agreed
};

}  // namespace citcat
