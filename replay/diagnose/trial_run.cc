#include "replay/diagnose/trial_run.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"
#include "formats/io/memory_limit.h"

namespace citcat {
namespace {

/// Instructions between the first checkpoints; doubled as often as there are too many of them.
constexpr std::uint64_t kFirstSpacing = 1 << 14;
/// What checkpoints may keep: frames written since the start, each once per checkpoint.
constexpr std::size_t kMaxTrialPlaces = 24;
constexpr std::size_t kMaxFrames = 60'000;
/// Checkpoints right before the divergence, so that trials are short.
constexpr std::uint64_t kLastSpacing[] = {131'072, 65'536, 32'768, 16'384, 8192, 4096, 512, 64, 8};

/// Instructions between two looks at the clock: hundredths of a second.
constexpr std::uint64_t kTrialLooks = 1 << 17;

}  // namespace

TrialRun::TrialRun(const Recording& recording, Schedule schedule, OpenEvidence evidence,
                   TrialOptions options)
    : recording_(recording),
      schedule_(std::move(schedule)),
      open_(std::move(evidence)),
      options_(std::move(options)) {
  RewindableReplay::Options replay;
  replay.verifying.policy = options_.policy;
  replay.verifying.final_memory = false;
  replay.observers = {&history_, &observed_};
  if (options_.time != nullptr) {
    replay.replay.progress = [time = options_.time](Position) { return !time->spent(); };
    replay.replay.progress_interval = kTrialLooks;
  }
  replay_ = std::make_unique<RewindableReplay>(recording_, schedule_, open_, std::move(replay));
}

/// Leaves every other checkpoint out, except for the first.
void TrialRun::thin_out() {
  std::vector<Place> kept;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (i % 2 == 0) kept.push_back(std::move(places_[i]));
  }
  places_ = std::move(kept);
}

/// As long as all that is kept, and the machine itself, are within the limit of memory.
void TrialRun::keep_place() {
  const auto frames = [&] {
    std::uint64_t sum = 2 * machine().memory().changed_frames().size();
    for (const Place& place : places_) sum += place.replayer().machine.pages.size();
    return sum;
  };
  while (!places_.empty() && frames() > memory_limit() / kPageSize) {
    if (places_.size() == 1) return;
    thin_out();
  }
  places_.push_back(replay_->here());
}

/// Without counts the replay cannot tell the end of the run from the end of a stretch after the
/// last interrupt and port read: there only the evidence says which it is.
ReplayReport TrialRun::go(std::uint64_t to) {
  ReplayReport report = replay_->run_to({to, 0});
  const bool at_stretch_end = report.instructions >= to && !recording_.instructions;
  if (at_stretch_end && report.end == ReplayReport::End::complete) {
    report.end = ReplayReport::End::stopped;
  }
  return replay_->verifier().finish(report);
}

ReplayReport TrialRun::run() {
  std::uint64_t spacing = kFirstSpacing;
  ReplayReport report;
  for (std::uint64_t next = spacing;; next = report.instructions + spacing) {
    keep_place();
    std::size_t frames = 0;
    for (const Place& place : places_) frames += place.replayer().machine.pages.size();
    if (places_.size() > kMaxTrialPlaces || (frames > kMaxFrames && places_.size() > 4)) {
      thin_out();
      spacing *= 2;
      next = places_.back().position().instruction + spacing;
    }
    report = go(next);
    if (options_.progress) options_.progress({report.instructions, 0});
    const bool goes_on = report.end == ReplayReport::End::stopped && report.instructions >= next;
    if (!goes_on) break;
  }
  ended_at_ = report.instructions;
  if (report.divergence) ended_at_ = std::max(ended_at_, report.divergence->position.instruction);
  for (const std::uint64_t distance : kLastSpacing) {
    if (ended_at_ < distance + places_.back().position().instruction + 1) continue;
    go_back(places_.back());
    const std::uint64_t at = ended_at_ - distance;
    const ReplayReport again = replay_->run_to({at, 0});
    if (again.end != ReplayReport::End::stopped || again.instructions != at) break;
    keep_place();
  }
  keep_place_in_repeat(report);
  return report;
}

/// A REP may take thousands of iterations to the one where the replay stopped.
void TrialRun::keep_place_in_repeat(const ReplayReport& report) {
  constexpr std::uint32_t kIterations = 8;
  if (!report.divergence || report.divergence->position.iteration < 2 * kIterations) return;
  Position at = report.divergence->position;
  at.iteration -= kIterations;
  go_back(places_.back());
  const ReplayReport again = replay_->run_to(at);
  if (again.end != ReplayReport::End::stopped || machine().position() != at) return;
  keep_place();
}

const TrialRun::Place& TrialRun::before(const TrialStart& start) const {
  const auto fits = [&](const Place& place) {
    return place.position() <= start.position && place.next_transaction() <= start.transaction &&
           place.replayer().next_internal <= start.internal_read;
  };
  const auto found = std::find_if(places_.rbegin(), places_.rend(), fits);
  return found != places_.rend() ? *found : places_.front();
}

void TrialRun::go_back(const Place& place, const std::vector<Hint>& hints) {
  if (!std::exchange(holds_, true)) replay_->hold();
  replay_->go_back(place, hints);
}

std::vector<std::function<void(Schedule&)>> TrialRun::apply(const std::vector<Hint>& hints) {
  std::vector<std::function<void(Schedule&)>> undo;
  for (const Hint& hint : hints) undo.push_back(apply_hint(hint, schedule_));
  return undo;
}

void TrialRun::take_back(const std::vector<std::function<void(Schedule&)>>& undo) {
  for (auto step = undo.rbegin(); step != undo.rend(); ++step) (*step)(schedule_);
}

/// Goes back and runs. A changed recording may be one that no machine can be in, or that no replay
/// takes: nothing then.
template <typename Run>
std::optional<ReplayReport> TrialRun::try_from(const Place& place, const std::vector<Hint>& hints,
                                               Run run) {
  try {
    go_back(place, hints);
    return run();
  } catch (const UsageError&) {
  } catch (const FormatError&) {
  }
  return std::nullopt;
}

const RunHistory& TrialRun::observe(const std::vector<Hint>& hints, const TrialStart& start,
                                    std::uint64_t to) {
  const Place& place = before(start);
  const auto undo = apply(hints);
  replay_->compare(false);
  observed_.begin(place.replayer().next_io, place.replayer().next_external);
  (void)try_from(place, hints, [&] { return replay_->run_to({to, 0}); });
  observed_.end();
  replay_->compare(true);
  take_back(undo);
  return observed_;
}

TrialRun::Outcome TrialRun::attempt(const std::vector<Hint>& hints, const TrialStart& start,
                                    std::uint64_t to) {
  const Place& place = before(start);
  const auto undo = apply(hints);
  const std::optional<ReplayReport> report = try_from(place, hints, [&] { return go(to); });
  take_back(undo);
  Outcome outcome;
  if (!report) return outcome;
  cost_ += report->instructions - std::min(report->instructions, place.position().instruction);
  cost_ += machine().position().iteration;
  outcome.instructions = report->instructions;
  outcome.divergence = report->divergence;
  outcome.complete = report->end == ReplayReport::End::complete;
  outcome.agrees = report->end != ReplayReport::End::diverged &&
                   (outcome.complete || report->instructions >= to);
  outcome.single_bit_changes = replay_->verifier().totals().single_bit_changes;
  return outcome;
}

const RunHistory& TrialRun::history(std::uint64_t instructions) {
  const std::uint64_t from = ended_at_ > instructions ? ended_at_ - instructions : 0;
  const Place& place = before({{from, 0}, ~std::uint64_t{0}});
  history_from_start_ = &place == &places_.front();
  go_back(place);
  internal_before_history_ = place.replayer().next_internal;
  history_.begin(place.replayer().next_io, place.replayer().next_external);
  go(ended_at_ + 1);
  history_.end();
  history_from_start_ &= history_.complete();
  return history_;
}

}  // namespace citcat
