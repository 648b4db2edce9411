#include "replay/run/replay_timeline.h"

#include <algorithm>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

namespace {

/// Instructions of a part, where there are enough. To go to the next part takes some ten
/// milliseconds, as long as one to two million instructions.
constexpr std::uint64_t kWorthwhile = std::uint64_t{1} << 22;

}  // namespace

ReplayTimeline::ReplayTimeline(const RecordingFile& file, Observer* observer,
                               TimelineOptions options)
    : options_(options), checkpoints_(file) {
  if (options_.every == 0)
    throw UsageError("a timeline needs a spacing of an instruction at least");
  SessionOptions session;
  session.check = options_.check;
  session.policy = options_.policy;
  session.rewindable = true;
  if (options_.use_checkpoints && !options_.check) {
    starts_ = checkpoints_.longest_series(options_.policy.strict);
  }
  if (!starts_.empty()) session.start = starts_.front();
  session.checkpoints = &checkpoints_;
  session_.emplace(file, observer, std::move(session));
  lay();
}

/// Keeps where the replay stands.
void ReplayTimeline::lay() {
  if (!laid_.emplace(position(), session_->checkpoint()).second) return;
  frames_ += laid_.at(position()).replayer.machine.pages.size();
  while (frames_ > options_.max_frames && laid_.size() > 2) {
    // Every other one goes, but for the beginning.
    options_.every *= 2;
    bool goes = false;
    std::erase_if(laid_, [&](const auto& item) {
      const bool erased = std::exchange(goes, !goes);
      if (erased) frames_ -= item.second.replayer.machine.pages.size();
      return erased;
    });
  }
}

/// Goes to the last place that is kept at or before `to`; stays where that is nearer.
void ReplayTimeline::go_before(Position to) {
  const Position here = position();
  const bool ahead = here <= to && report_.end != ReplayReport::End::diverged;
  const auto behind = laid_.upper_bound(to);
  const Position laid = std::prev(behind)->first;
  // Strictly before, as in Checkpoints::start_for(); the first is the beginning.
  const auto start = std::partition_point(
      starts_.begin(), starts_.end(),
      [to](const Checkpoints::Start& s) { return !s.ordinal || s.instruction < to.instruction; });
  const Position stored{starts_.empty() ? 0 : std::prev(start)->instruction, 0};
  if (ahead && here >= laid && here >= stored) return;
  if (stored > laid) return session_->go_to(*std::prev(start), ~std::uint64_t{0});
  session_->restore(std::prev(behind)->second);
}

/// Goes on to `to`; false where the run ends before.
bool ReplayTimeline::run_to(Position to) {
  while (position() < to) {
    const std::uint64_t next = (position().instruction / options_.every + 1) * options_.every;
    const Position stop = std::min(to, Position{next, 0});
    const Moment before = moment();
    report_ = session_->run_to(stop);
    if (report_.end == ReplayReport::End::diverged || position() < stop) return false;
    if (moment() == before) return false;
    if (position() == Position{next, 0}) lay();
  }
  return true;
}

ReplayReport ReplayTimeline::seek(Position to) {
  go_before(to);
  report_ = {};
  if (position() < to) {
    run_to(to);
  } else {
    report_ = session_->run_to(position());
  }
  return report_;
}

bool ReplayTimeline::step() {
  const Moment before = moment();
  report_ = session_->run_to({before.position.instruction, before.position.iteration + 1});
  return report_.end != ReplayReport::End::diverged && moment() != before;
}

bool ReplayTimeline::step_back() {
  const Moment here = moment();
  const Position at = here.position;
  if (at == Position{}) return false;
  // The boundary before is one of the instruction before, which may have been repeated.
  const Position near = at.iteration != 0 ? Position{at.instruction, at.iteration - 1}
                                          : Position{at.instruction - 1, 0};
  seek(near);
  const ReplaySession::Checkpoint first = session_->checkpoint();
  std::uint64_t steps = 0;
  while (moment() != here) {
    if (!step()) return false;
    ++steps;
  }
  session_->restore(first);
  for (; steps > 1; --steps) step();
  return true;
}

std::size_t ReplayTimeline::mark() {
  marks_.emplace(++last_mark_, session_->checkpoint());
  return last_mark_;
}

void ReplayTimeline::return_to(std::size_t mark) {
  const auto found = marks_.find(mark);
  if (found == marks_.end()) throw UsageError("there is no such mark");
  session_->restore(found->second);
  report_ = {};
  report_.instructions = position().instruction;
}

std::vector<ReplayPart> part_at_checkpoints(const Checkpoints& checkpoints,
                                            const ReplayRange& range, bool strict,
                                            unsigned processes) {
  std::vector<ReplayPart> parts;
  const std::vector<Checkpoints::Start> starts = checkpoints.longest_series(strict);
  if (starts.empty()) return parts;
  const std::uint64_t last = std::min(range.to, starts.back().instruction + 1);
  const std::uint64_t span = last > range.from ? last - range.from : 0;
  const std::uint64_t least = std::min(kWorthwhile, span / processes);
  for (const Checkpoints::Start& start : starts) {
    // What is delivered at a checkpoint belongs to the part before it.
    const std::uint64_t first = start.ordinal ? start.instruction + 1 : 0;
    if (parts.empty() || first <= range.from) {
      parts.assign(1, {range, start});
    } else if (first < range.to && first >= parts.back().range.from + least) {
      parts.back().range.to = first;
      parts.push_back({{first, range.to}, start});
    }
  }
  return parts;
}

}  // namespace citcat
