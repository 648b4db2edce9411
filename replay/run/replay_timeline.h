#pragma once
// A recorded run in which one can move to any position, in both directions: the basis of a
// debugger.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/run/interruption.h"
#include "replay/run/laid_checkpoints.h"
#include "replay/run/replay_session.h"
#include "replay/run/session_checkpoint.h"
#include "replay/run/stop_judge.h"
#include "replay/run/verified_front.h"
#include "replay/session/checkpoints.h"

namespace citcat {

struct TimelineOptions {
  /// Compare with the evidence, or with digests in its place: once, before one goes anywhere for
  /// the first time. What was taken over from the bus then is there whenever one comes again.
  bool check = false;
  ComparisonPolicy policy;
  /// Begin at the archive's checkpoints, whose run was compared when they were taken. Without
  /// `check` only.
  bool use_checkpoints = true;
  /// Instructions between the checkpoints that are laid on the way, in memory; doubled as often as
  /// they hold more than `max_frames` frames of 4 KiB together.
  std::uint64_t every = std::uint64_t{1} << 19;
  std::size_t max_frames = 150'000;
  /// Called now and then, within a REP too, with the position of what is replayed; may be empty.
  std::function<void(Position)> progress;
  /// Called with true before what the observer has received in this move is replayed once more, to
  /// come back to where the run ends or where the comparison began again, and with false after it;
  /// may be empty.
  std::function<void(bool)> again;
};

/// A position is reached with what is delivered there: an interrupt due at it has pushed its frame.
/// Several moments may have one position (Moment); seek() goes to the first, step() and step_back()
/// go from each to the next.
class ReplayTimeline {
 public:
  /// `file` must outlive the timeline, as must the observer, which may be null. It observes
  /// everything that is replayed on the way, and again what is replayed a second time. Interrupts
  /// must have their places. Throws UsageError where the recording does not allow what is asked
  /// for.
  ReplayTimeline(const RecordingFile& file, Observer* observer, TimelineOptions options);
  ReplayTimeline(const ReplayTimeline&) = delete;
  ReplayTimeline& operator=(const ReplayTimeline&) = delete;

  /// Asked now and then, within a REP too, whether what is done is to end early; may be empty.
  using Interrupt = Interruption::Question;
  /// Goes to `to`, or as far towards it as the run goes. Where it diverges on the way it stays
  /// before that.
  ReplayReport seek(Position to, const Interrupt& interrupt = {});
  /// The last seek(), search or tell() was interrupted on the way.
  bool interrupted() const { return interruption_.happened(); }
  /// Goes to the beginning, before whatever is delivered there.
  void rewind();
  /// Goes on from here to `to`, or as far towards it as the run goes, and leaves nothing out: the
  /// observer receives all of it.
  void go_on(Position to) { run_to(to); }
  /// One instruction or iteration further, or to the handler of the fault that the instruction
  /// raises. False at the end of the run.
  bool step();
  /// Back to before the last one. False at the beginning.
  bool step_back();
  /// The same, with every access to the memory that is watched in `stops` put into `met`, in the
  /// order of time.
  bool step(const StopSet& stops, std::vector<StopHit>& met);
  bool step_back(const StopSet& stops, std::vector<StopHit>& met);

  /// What ended a run_to_stop() or run_back_to_stop().
  struct Stop {
    enum class Why : std::uint8_t {
      hit,
      end,          ///< of the run, or its beginning
      interrupted,  ///< by who was asked
    } why = Why::end;
    std::optional<StopHit> hit = std::nullopt;
    /// For watched memory: every access by the same instruction, and by what is delivered behind
    /// it.
    std::vector<StopHit> met = {};
  };
  /// Goes on to where the run meets one of `stops`: before an instruction with a breakpoint, other
  /// than the one about to run; after what accesses watched memory.
  Stop run_to_stop(const StopSet& stops, const Interrupt& interrupt = {});
  /// Goes back to where the run met one of `stops` last: before the instruction that did.
  Stop run_back_to_stop(const StopSet& stops, const Interrupt& interrupt = {});
  /// Replays from `from` to `to` and tells `observer` of what StopJudge::tell() says; then is
  /// where it stood. False where it was interrupted.
  bool tell(Position from, Moment to, Observer& observer, bool each = false,
            const Interrupt& interrupt = {});
  /// The same from where it is, without what was delivered there; then is at `to`, or where
  /// it was interrupted.
  bool tell_on(Moment to, Observer& observer, bool each, const Interrupt& interrupt = {}) {
    return tell_up_to(to, observer, position(), each, interrupt);
  }

  Moment moment() const { return session_->replayer().moment(); }
  Position position() const { return session_->position(); }
  CpuState registers() const { return session_->machine().save(); }
  const Memory& memory() const { return session_->machine().memory(); }
  const Machine& machine() const { return session_->machine(); }
  const Replayer& replayer() const { return session_->replayer(); }
  /// The report of the last move.
  const ReplayReport& report() const { return report_; }
  /// Where the run is known to end; nullopt as long as nobody was there.
  std::optional<Position> end() const {
    return end_ ? std::optional(end_->position) : std::nullopt;
  }
  /// Why it ends there, if that is not a regular end.
  const std::optional<Divergence>& divergence() const { return divergence_; }

  /// The moment, to come back to with return_to(), whatever is done in between. Until forget().
  std::size_t mark();
  void return_to(std::size_t mark);
  void forget(std::size_t mark) { marks_.erase(mark); }

  /// From here on the machine may be changed, and goes on with that as long as what was recorded
  /// of its surroundings fits; back only to the last change. seek() is not for a branch.
  void begin_branch();
  /// Comes back to where the branch began.
  void end_branch();
  bool in_branch() const { return aside_.has_value(); }
  // Changes a branch.
  void change_registers(const CpuState& state);
  /// Within one frame, which must be mapped.
  void change_memory(PhysAddr address, std::span<const std::uint8_t> bytes);

  /// Checkpoints in memory that were laid on the way.
  std::size_t laid() const { return laid_.size(); }

 private:
  const Checkpoints::Start* stored_before(std::uint64_t instruction) const;
  void restore(const Replayer::Checkpoint& checkpoint);
  void begin_at(std::optional<Moment> laid, std::optional<Moment> near,
                const Checkpoints::Start* stored, bool may_stay);
  void know(Position to);
  Position part_of_way(Position to) const;
  bool run_to(Position to);
  bool is_at_end() const;
  void deliver_last();
  bool go_one_further();
  void approach(Position to);
  void skip_iterations(Moment bound);
  void go_to_last_before(Moment bound);
  void go_to_hit(const StopHit& hit);
  std::vector<StopHit> met_by_next_step(const StopSet& stops);
  void search_up_to(Moment bound);
  bool tell_up_to(Moment to, Observer& observer, Position from, bool each,
                  const Interrupt& interrupt);
  /// Whether something was stored to what is watched.
  enum class Stored : std::uint8_t { nowhere, perhaps, interrupted };
  Stored narrow(const MemoryWatch& watched, std::uint64_t span, Moment& bound);
  void note_end();
  void come_back(Moment here);
  void begin_anew_here();

  /// What belongs to the run that was recorded, while a branch of it runs.
  struct Aside {
    LaidCheckpoints laid, near;
    std::optional<Moment> end;
    std::optional<Divergence> divergence;
    std::size_t mark = 0;
  };

  TimelineOptions options_;
  Checkpoints checkpoints_;
  std::vector<Checkpoints::Start> starts_;  ///< of the archive, the beginning first; may be empty
  StopJudge judge_;
  std::optional<ReplaySession> session_;
  LaidCheckpoints laid_;  ///< at multiples of `every`
  LaidCheckpoints near_;  ///< where one has been lately
  std::optional<VerifiedFront> front_;
  std::size_t adopted_ = 0;  ///< of what the front took over, by the session
  bool over_again_ = false;  ///< the front has begun anew
  /// The last moment; before a divergence the first one of its position.
  std::optional<Moment> end_;
  std::optional<Divergence> divergence_;
  std::optional<Aside> aside_;
  Interruption interruption_;
  bool left_early_ = false;  ///< the session's run, within the last run_to()
  Position known_to_;        ///< what the front is to have compared at least
  std::map<std::size_t, Replayer::Checkpoint> marks_;
  std::size_t last_mark_ = 0;
  ReplayReport report_;
};

/// A part of a run, and the checkpoint that it is begun at.
struct ReplayPart {
  ReplayRange range;
  Checkpoints::Start start;
};
/// Parts the range just after checkpoints, each of so many instructions at least that it is worth
/// a process, for `processes` of them; empty where there are none to begin at. `strict`: as in
/// Checkpoints::start_for().
std::vector<ReplayPart> part_at_checkpoints(const Checkpoints& checkpoints,
                                            const ReplayRange& range, bool strict,
                                            unsigned processes);

}  // namespace citcat
