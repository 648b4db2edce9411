#pragma once
// One replay of a recording. It compares the run with the evidence, or with the digests that an
// archive may have in its place; it applies results that an earlier replay adopted from the bus; it
// can start at a checkpoint; and it knows where the recorded run ended.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "events/archive/recording_file.h"
#include "events/machine/address.h"
#include "events/machine/cpu_state.h"
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
class Machine;
class Memory;
struct PlainPlace;
class Replayer;
struct ReplayOptions;
class Verifier;
struct VerifierOptions;
enum class WalkPolicy : std::uint8_t;

struct SessionOptions {
  /// The first instruction of interest: the replay starts at the archive's last checkpoint before
  /// it, if there is one (see `start`).
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};  ///< first instruction not replayed
  /// For an end within a REP, before `to`: the first iteration not replayed. Digests are compared
  /// only up to this position.
  std::optional<Position> within = std::nullopt;
  bool check = true;        ///< compare with the evidence, or with digests
  ComparisonPolicy policy;  ///< `waived` and `told_changes` come from the recording
  /// Compare in the fast way first, which accepts only what agrees plainly
  /// (VerifierOptions::plain), and if that fails replay again from the beginning with the full
  /// comparison. run() does both; callers of run_to() and end() have to make a second session
  /// themselves (Verifier::plain() says whether). Ignored for an observer without `start_over`.
  bool plain_first = false;
  /// Called before a second replay from the beginning. It discards everything that the observer
  /// received, and returns the observer to use from then on.
  std::function<Observer*()> start_over;
  /// As in ReplayOptions.
  ExecutionPath path = ExecutionPath::blocks;
  /// Receives the clocks at which the bus showed what is replayed; must outlive the session. Needs
  /// `check`, evidence and a replay from the beginning; excludes `plain_first`.
  BusTimes* times = nullptr;
  /// Predict the traffic of this cache, unless it is null. Needs `check` and a replay from the
  /// beginning.
  const CacheDescriptor* cache = nullptr;
  /// How the captured processor fills its TLB, for observers of page walks; nullopt: in the way
  /// that needs the fewest walks. Excludes `start`, whose TLB was filled in another way, and
  /// `cache`.
  std::optional<WalkPolicy> walks;
  /// Start at this checkpoint, or at the beginning of the run from which the checkpoints come. The
  /// evidence was compared when they were taken, and is not compared again; instead the processor's
  /// state must agree with each checkpoint on the way.
  std::optional<CheckpointStart> start;
  const Checkpoints* checkpoints = nullptr;  ///< for `start`; null: the session reads them itself
  /// The result of an earlier comparison of this recording (replay/run/verified_run.h), which is
  /// then not compared again. Must outlive the session; ignored with `start`.
  const CheckpointRun* verified = nullptr;
  std::function<void(Position)> progress;  ///< called now and then; may be empty
  /// Called now and then, also within a REP: returns true to end the current run here, as if it
  /// were at its end. A later call may continue. May be empty.
  std::function<bool(Position)> pause;
  /// Allow checkpoint() and restore(). Evidence then stays in memory once it was read, and final
  /// memory is not compared. Excludes `plain_first` and `cache`.
  bool rewindable = false;
  /// Takes the place of the comparison in a session without one; may be null.
  BlockJudge* judge = nullptr;
};

class ReplaySession {
 public:
  /// `observer` may be null. It, `file` and everything that `options` points to must outlive the
  /// session. All interrupts of the recording must have positions
  /// (replay/infer/places/event_placer.h). Throws UsageError if the recording does not allow these
  /// options.
  ReplaySession(const RecordingFile& file, Observer* observer, SessionOptions options);
  ~ReplaySession();
  ReplaySession(const ReplaySession&) = delete;
  ReplaySession& operator=(const ReplaySession&) = delete;

  /// Replays to the end. Evidence that is left over there counts as a divergence. Digests do not
  /// change the report: see differs_before().
  ReplayReport run();
  /// The same, and takes checkpoints on the way. If the run starts over, it takes all of them
  /// again.
  ReplayReport run(CheckpointTaker& taker);
  /// Turns a replay that started at a checkpoint into one that starts at another and ends before
  /// `to`, for another run(). Translated code is kept where possible.
  void go_to(const CheckpointStart& start, std::uint64_t to);
  /// Replays up to an instruction, at most up to to(); may be called again. Evidence that is left
  /// over is no divergence. The processor's state must agree with each checkpoint on the way.
  ReplayReport run_to(std::uint64_t to) { return run_to(Position{to, 0}); }
  /// The same, up to a boundary between two iterations of a REP.
  ReplayReport run_to(Position to);
  /// The state of replay and comparison at one moment, for restore() (SessionOptions::rewindable).
  /// Defined in replay/run/session_checkpoint.h.
  struct Checkpoint;
  Checkpoint checkpoint() const;
  /// Returns to a checkpoint of this session. The observer does not notice.
  void restore(const Checkpoint& checkpoint);
  /// As Replayer::step(). Only for a session without comparison.
  ReplayReport step();
  /// Sets the adoptions to make from here on: those that a comparison of the same run has made so
  /// far, ordered by position. Only for a session without comparison that starts at the beginning.
  void take_over(std::vector<Adoption> adoptions);
  /// Call this when there is nothing left to replay: turns `report`, which the last run_to()
  /// returned, into the report that run() would have returned.
  ReplayReport end(ReplayReport report);
  /// The first instruction that will not be replayed, as far as it is known.
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
  /// Memory, in order to change it. From then on the replay is no longer the recorded run. To
  /// change registers, use restore().
  Memory& memory_to_change();
  /// Compares memory after run() with an image captured at the end, or, if `captured` is null, with
  /// the memory that follows from the writes on the bus. A captured image may be later than the
  /// last transaction. The replay then continues until its memory equals the image, as long as it
  /// does nothing that the bus would have shown.
  FinalMemory compare_final(const MemoryImage* captured);
  /// Results so far that differ from one processor model to the next (x87 transcendentals, RCPPS
  /// ...).
  std::uint64_t model_specific_results() const;
  /// The instruction that gave the first of them, as text: position, address, disassembly.
  std::string first_model_specific() const;
  /// Null without SessionOptions::cache.
  const CacheCheck* cache() const;
  /// Null unless evidence is compared.
  const Verifier* verifier() const;
  /// Results that this replay adopted from the bus. A replay without the evidence needs them.
  const std::vector<Adoption>& adoptions() const;
  /// For an archive without evidence, after the replay: the first digest that differs, as the
  /// instruction before which the run differs from the verified one; nullopt if none differs.
  std::optional<std::uint64_t> differs_before();
  /// For an archive without evidence, after the replay: the digests that were compared.
  const DigestCheck& digests() const;

 private:
  struct Parts;

  void set_up(bool plain);
  void add_comparison(bool plain, Listeners& listeners);
  std::optional<Position> end_within_repeat() const;
  bool ends_within_begun(Position end) const;
  VerifierOptions verifier_options(bool plain) const;
  ReplayOptions replay_options() const;
  void set_walk_policy(Machine& machine) const;
  ReplayReport run_through();
  bool look_at_doubts();
  bool agrees_closely(const PlainPlace* place, std::uint64_t end);
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
