#pragma once
// One replay of a recording. It compares with the evidence, or with the digests that an archive may
// keep in its place; applies results that an earlier replay adopted from the bus; can start at a
// checkpoint; and knows where the recorded run ended.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "events/address.h"
#include "events/archive/recording_file.h"
#include "events/cpu_state.h"
#include "events/position.h"
#include "replay/machine/execution_path.h"
#include "replay/machine/observer.h"
#include "replay/session/checkpoint_start.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"

namespace citcat {

class BlockJudge;
class BusTimes;
class CacheCheck;
struct CacheDescriptor;
struct CheckpointRun;
class CheckpointTaker;
class Checkpoints;
class DigestCheck;
struct FinalMemory;
class Listeners;
class Memory;
class Replayer;
class Verifier;
enum class WalkPolicy : std::uint8_t;

struct SessionOptions {
  /// The first instruction of interest: the replay starts at the archive's last checkpoint before
  /// it, if there is one (see `start`).
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};  ///< first instruction not replayed
  /// Within a REP before that: first iteration not replayed. Digests are compared up to there only.
  std::optional<Position> within = std::nullopt;
  bool check = true;        ///< compare with the evidence, or with digests
  ComparisonPolicy policy;  ///< what the recording waives is taken from it
  /// Compare in the fast way first, which accepts only what agrees plainly
  /// (VerifierOptions::plain), and if that fails replay again from the beginning with the full
  /// comparison. run() does both; callers of run_to() and end() have to make a second session
  /// themselves (Verifier::plain() says whether). Ignored for an observer without `start_over`.
  bool plain_first = false;
  /// Called before a second replay from the beginning: discards what the observer was told, and
  /// returns the observer to use from then on.
  std::function<Observer*()> start_over;
  /// As in ReplayOptions.
  ExecutionPath path = ExecutionPath::blocks;
  /// Is told when the bus showed what is replayed; must outlive the session. Needs `check`,
  /// evidence and a replay from the beginning; excludes `plain_first`.
  BusTimes* times = nullptr;
  /// Predict the traffic of this cache; null: of none. Needs `check` and a replay from the
  /// beginning.
  const CacheDescriptor* cache = nullptr;
  /// How the captured processor fills its TLB, for observers of its page walks; nullopt: in the way
  /// that needs the fewest. Excludes `start`, whose TLB was filled otherwise, and `cache`.
  std::optional<WalkPolicy> walks;
  /// Start at this checkpoint, or at the beginning of the run that the checkpoints are of. The
  /// evidence is then not compared, because it was when they were taken; instead the processor's
  /// state must agree with each checkpoint that is passed.
  std::optional<CheckpointStart> start;
  const Checkpoints* checkpoints = nullptr;  ///< of `start`; null: the session reads them itself
  /// What an earlier comparison of this recording gave (replay/run/verified_run.h): it is not
  /// compared again. Must outlive the session; ignored with `start`, which knows it too.
  const CheckpointRun* verified = nullptr;
  std::function<void(Position)> progress;  ///< called now and then; may be empty
  /// Asked now and then, within a REP too: whether to end what runs now, as if it were asked to go
  /// no further. It may go on later. May be empty.
  std::function<bool(Position)> pause;
  /// Allow checkpoint() and restore(): evidence is kept once it was read, and final memory is not
  /// compared. Excludes `plain_first` and `cache`.
  bool rewindable = false;
  /// Sits where the evidence would be compared, in a session without comparison; may be null.
  BlockJudge* judge = nullptr;
};

class ReplaySession {
 public:
  /// `observer` may be null; it, `file` and what `options` points to must outlive the session.
  /// Interrupts of the recording must have their places (replay/infer/places/event_placer.h).
  /// Throws UsageError where the recording does not allow what is asked for.
  ReplaySession(const RecordingFile& file, Observer* observer, SessionOptions options);
  ~ReplaySession();
  ReplaySession(const ReplaySession&) = delete;
  ReplaySession& operator=(const ReplaySession&) = delete;

  /// Replays to the end. Evidence left over there counts as a divergence. What digests say is not
  /// in the report: see differs_before().
  ReplayReport run();
  /// The same, taking checkpoints on the way; all of them again if the run starts over.
  ReplayReport run(CheckpointTaker& taker);
  /// Turns a replay that started at a checkpoint into one that starts at another and ends before
  /// `to`, for another run(). Translated code is kept where possible.
  void go_to(const CheckpointStart& start, std::uint64_t to);
  /// Replays up to an instruction, to() at the latest; may be called again. Evidence left over is
  /// no divergence. The processor's state must agree with each checkpoint that is passed.
  ReplayReport run_to(std::uint64_t to) { return run_to(Position{to, 0}); }
  /// The same, up to a boundary between two iterations of a REP.
  ReplayReport run_to(Position to);
  /// Replay and comparison at one moment, to return to (SessionOptions::rewindable). Defined in
  /// replay/run/session_checkpoint.h.
  struct Checkpoint;
  Checkpoint checkpoint() const;
  /// Returns to a checkpoint of this session. The observer is not told.
  void restore(const Checkpoint& checkpoint);
  /// As Replayer::step(). Only for a session without comparison.
  ReplayReport step();
  /// Sets the adoptions to make from here on: those that a comparison of the same run has made so
  /// far, ordered by position. Only for a session without comparison that starts at the beginning.
  void take_over(std::vector<Adoption> adoptions);
  /// Completes `report`, which the last run_to() returned, to what run() would have returned: for
  /// when there is nothing left to replay.
  ReplayReport end(ReplayReport report);
  /// The first instruction that will not be replayed, as far as is known.
  std::uint64_t to() const;
  /// The instruction at which the replay started: 0, or that of a checkpoint.
  std::uint64_t began_at() const { return options_.start ? options_.start->instruction : 0; }
  /// Instructions completed so far, and iterations of the REP in progress.
  Position position() const;
  /// The processor's state at position().
  CpuState registers() const;
  /// A byte of memory at position(); nullopt where its value is not known.
  std::optional<std::uint8_t> byte(PhysAddr address) const;
  const Replayer& replayer() const;
  const Machine& machine() const;
  /// Memory, to change it: what is replayed from then on is no longer the recorded run. Registers
  /// are changed by restore().
  Memory& memory_to_change();
  /// Compares memory after run() with an image captured at the end, or, where `captured` is null,
  /// with what the writes on the bus leave. A captured image may be younger than the last
  /// transaction: the replay then continues, as long as nothing happens that the bus would have
  /// shown, until its memory equals the image.
  FinalMemory compare_final(const MemoryImage* captured);
  /// Results so far that differ from one processor model to the next (x87 transcendentals, RCPPS
  /// ...).
  std::uint64_t model_specific_results() const;
  /// The instruction that gave the first of them, as text: position, address, disassembly.
  std::string first_model_specific() const;
  /// Null when no cache was asked for.
  const CacheCheck* cache() const;
  /// Null unless evidence is compared.
  const Verifier* verifier() const;
  /// Results that this replay adopted from the bus: a replay without the evidence needs them.
  const std::vector<Adoption>& adoptions() const;
  /// For an archive without evidence, after the replay: the instruction before which the run has
  /// become another than the one that was verified; nullopt where no digest differs.
  std::optional<std::uint64_t> differs_before();
  /// The digests compared with, for an archive without evidence; to be asked after the replay.
  const DigestCheck& digests() const;

 private:
  struct Parts;

  void set_up(bool plain);
  void add_comparison(bool plain, Listeners& listeners);
  std::optional<Position> end_within_repeat() const;
  void put_off_doubts();
  void start_over(bool plain);
  ReplayReport run_through();
  ReplayReport run_closely();
  ReplayReport run_carefully();

  const RecordingFile& file_;
  Observer* observer_;
  SessionOptions options_;
  std::optional<Position> end_;            ///< within a REP: where the run ended
  std::optional<CheckpointStart> passed_;  ///< the last checkpoint that agreed
  CheckpointTaker* taker_ = nullptr;       ///< of run(); null where none are taken
  std::unique_ptr<Parts> parts_;
};

}  // namespace citcat
