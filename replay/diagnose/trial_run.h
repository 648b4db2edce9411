#pragma once
// A recording replayed up to where it diverges from its evidence, and then again from places before
// that, each time with something changed: which change makes the two agree?

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "events/hint.h"
#include "replay/diagnose/run_history.h"
#include "replay/session/time_budget.h"
#include "replay/verify/rewindable_replay.h"

namespace citcat {

struct TrialOptions {
  ComparisonPolicy policy;
  std::function<void(Position)> progress;
  /// When it is spent every replay ends where it is (ReplayReport::End::stopped). May be null.
  TimeBudget* time = nullptr;
};

/// Where changes begin to matter: the replay must go back to before all of it.
struct TrialStart {
  Position position;
  std::uint64_t transaction = ~std::uint64_t{0};
  /// Number of the first value that crosses no bus and must still be ahead.
  std::uint64_t internal_read = ~std::uint64_t{0};
};

class TrialRun {
 public:
  using OpenEvidence = EvidenceSource;
  /// `recording` must outlive the object; its run is given `schedule`. `evidence` opens its
  /// evidence from the start.
  TrialRun(const Recording& recording, Schedule schedule, OpenEvidence evidence,
           TrialOptions options);

  /// The whole run as it is. Once, before everything else.
  ReplayReport run();

  struct Outcome {
    bool agrees = false;    ///< no disagreement up to where it was to go, or to the end
    bool complete = false;  ///< to the end of the recording
    std::uint64_t instructions = 0;
    std::uint64_t single_bit_changes = 0;
    std::optional<Divergence> divergence;
  };
  /// Replays with `hints` applied up to instruction `to`, from the last checkpoint before `start`.
  /// What no replay takes does not agree.
  Outcome attempt(const std::vector<Hint>& hints, const TrialStart& start, std::uint64_t to);

  /// Replays, as it was, the last `instructions` before the divergence and it, and keeps what they
  /// did. The history begins at the run's start when there are no more.
  const RunHistory& history(std::uint64_t instructions);
  /// Whether it does.
  bool history_from_start() const { return history_from_start_; }

  /// Replays with `hints` as attempt() does, without comparing anything, and keeps what that did.
  /// Valid until the next call.
  const RunHistory& observe(const std::vector<Hint>& hints, const TrialStart& start,
                            std::uint64_t to);

  Machine& machine() { return replay_->machine(); }
  /// Values that cross no bus and were used before the history begins.
  std::uint64_t internal_reads_before_history() const { return internal_before_history_; }
  /// The interrupt of the schedule that comes next where the last replay ended.
  std::size_t next_interrupt() const { return replay_->replayer().next_interrupt(); }
  const Recording& recording() const { return recording_; }
  /// The schedule of the unchanged run.
  const Schedule& schedule() const { return schedule_; }
  std::unique_ptr<EvidenceReader> open_evidence() const { return open_(); }
  /// Instructions replayed by attempts so far, and iterations of one that they ended within.
  std::uint64_t cost() const { return cost_; }

 private:
  using Place = RewindableReplay::Place;
  ReplayReport go(std::uint64_t to);
  void thin_out();
  void keep_place();
  void keep_place_in_repeat(const ReplayReport& report);
  const Place& before(const TrialStart& start) const;
  std::vector<std::function<void(Schedule&)>> apply(const std::vector<Hint>& hints);
  void take_back(const std::vector<std::function<void(Schedule&)>>& undo);
  void go_back(const Place& place, const std::vector<Hint>& hints = {});
  template <typename Run>
  std::optional<ReplayReport> try_from(const Place& place, const std::vector<Hint>& hints, Run run);

  const Recording& recording_;
  Schedule schedule_;  ///< changed during a trial, and back to what it was after it
  OpenEvidence open_;
  TrialOptions options_;
  RunHistory history_{recording_, schedule_};
  RunHistory observed_{recording_, schedule_};  ///< idle but in observe()
  std::unique_ptr<RewindableReplay> replay_;
  std::vector<Place> places_;  ///< by position
  std::uint64_t ended_at_ = 0;
  std::uint64_t cost_ = 0;
  bool history_from_start_ = false;
  std::uint64_t internal_before_history_ = 0;
  bool holds_ = false;  ///< the evidence that was read is kept from now on
};

}  // namespace citcat
