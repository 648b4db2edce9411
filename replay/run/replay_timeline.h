#pragma once
// A recorded run that one moves in, to any position and in both directions: what a debugger stands
// on.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "events/archive/recording_file.h"
#include "replay/run/session_checkpoint.h"
#include "replay/session/checkpoints.h"

namespace citcat {

struct TimelineOptions {
  /// Compare with the evidence on the way, wherever one goes; what has agreed once is not compared
  /// with the digests of an archive without evidence. Slower.
  bool check = false;
  ComparisonPolicy policy;
  /// Begin at the archive's checkpoints, whose run was compared when they were taken. Without
  /// `check` only.
  bool use_checkpoints = true;
  /// Instructions between the checkpoints that are laid on the way, in memory; doubled as often as
  /// they hold more than `max_frames` frames of 4 KiB together.
  std::uint64_t every = std::uint64_t{1} << 16;
  std::size_t max_frames = 60'000;
};

/// A position is reached with what is delivered there: an interrupt due at it has pushed its frame.
/// Within a REP an interrupt goes back to position N; of two moments with one position seek() goes
/// to the first.
class ReplayTimeline {
 public:
  /// `file` must outlive the timeline, as must the observer, which may be null. It is told of what
  /// is replayed, again wherever one comes a second time. Interrupts must have their places. Throws
  /// UsageError where the recording does not allow what is asked for.
  ReplayTimeline(const RecordingFile& file, Observer* observer, TimelineOptions options);
  ReplayTimeline(const ReplayTimeline&) = delete;
  ReplayTimeline& operator=(const ReplayTimeline&) = delete;

  /// Goes to `to`, or as far towards it as the run goes. Where it diverges on the way it stays
  /// there.
  ReplayReport seek(Position to);
  /// One instruction or iteration further. False at the end of the run.
  bool step();
  /// Back to before the last one. False at the beginning.
  bool step_back();

  Position position() const { return session_->position(); }
  CpuState registers() const { return session_->machine().save(); }
  const Memory& memory() const { return session_->machine().memory(); }
  const Machine& machine() const { return session_->machine(); }
  /// Of the last move.
  const ReplayReport& report() const { return report_; }

  /// The moment, to come back to with return_to(), whatever is done in between. Until forget().
  std::size_t mark();
  void return_to(std::size_t mark);
  void forget(std::size_t mark) { marks_.erase(mark); }

  /// Checkpoints in memory.
  std::size_t laid() const { return laid_.size(); }

 private:
  struct Moment {
    Position position;
    std::size_t interrupt = 0;  ///< the next one
    bool operator==(const Moment&) const = default;
  };
  Moment moment() const { return {position(), session_->replayer().next_interrupt()}; }
  void go_before(Position to);
  bool run_to(Position to);
  void lay();

  TimelineOptions options_;
  Checkpoints checkpoints_;
  std::vector<Checkpoints::Start> starts_;  ///< of the archive, the beginning first; may be empty
  std::optional<ReplaySession> session_;
  std::map<Position, ReplaySession::Checkpoint> laid_;
  std::size_t frames_ = 0;  ///< that these hold
  std::map<std::size_t, ReplaySession::Checkpoint> marks_;
  std::size_t last_mark_ = 0;
  ReplayReport report_;
};

/// A part of a run, and the checkpoint that it is begun at.
struct ReplayPart {
  ReplayRange range;
  Checkpoints::Start start;
};
/// Parts the range just behind checkpoints, each of so many instructions at least that it is worth
/// a process, for `processes` of them; empty where there are none to begin at. `strict`: as in
/// Checkpoints::start_for().
std::vector<ReplayPart> part_at_checkpoints(const Checkpoints& checkpoints,
                                            const ReplayRange& range, bool strict,
                                            unsigned processes);

}  // namespace citcat
