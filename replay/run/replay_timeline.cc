#include "replay/run/replay_timeline.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/io/error.h"

namespace citcat {

namespace {

/// Instructions of a part, where there are enough. To go to the next part takes some ten
/// milliseconds, as long as one to two million instructions.
constexpr std::uint64_t kWorthwhile = std::uint64_t{1} << 22;

/// Checkpoints where one has been lately: so many, and no more frames.
constexpr std::size_t kNear = 48, kNearFrames = 50'000;
/// How far before a place they are laid, in instructions.
constexpr std::uint64_t kNearDistances[] = {std::uint64_t{1} << 15, std::uint64_t{1} << 8};

/// Lengths of what is searched through at once, in instructions: short at first, because what is
/// looked for is often near.
constexpr std::uint64_t kFirstSlice = std::uint64_t{1} << 14,
                        kLongestSlice = std::uint64_t{1} << 20;
/// Longer than any run.
constexpr std::uint64_t kLongestSpan = std::uint64_t{1} << 62;

/// What is compared before anybody wants to see it, in instructions.
constexpr std::uint64_t kAhead = std::uint64_t{1} << 14;

/// A REP's iterations beyond this many are not gone through one by one.
constexpr std::uint32_t kManyIterations = 8;

Position boundary_before(Position at) {
  if (at == Position{}) return at;
  return at.iteration != 0 ? Position{at.instruction, at.iteration - 1}
                           : Position{at.instruction - 1, 0};
}

/// No boundary lies between a position and this one.
Position behind(Position at) { return {at.instruction, at.iteration + 1}; }

/// The bound before which a moment is the last.
Moment behind(Moment moment) { return {moment.deliveries, behind(moment.position)}; }

}  // namespace

ReplayTimeline::ReplayTimeline(const RecordingFile& file, Observer* observer,
                               TimelineOptions options)
    : options_(std::move(options)),
      checkpoints_(file),
      laid_(options_.max_frames),
      near_(kNearFrames) {
  if (options_.every == 0)
    throw UsageError("a timeline needs a spacing of an instruction at least");
  SessionOptions session;
  session.check = false;
  session.policy = options_.policy;
  session.rewindable = true;
  session.judge = &judge_;
  session.progress = options_.progress;
  session.pause = [this](Position) { return left_early_ = interruption_.due(); };
  if (options_.use_checkpoints && !options_.check) {
    starts_ = checkpoints_.longest_series(options_.policy.strict);
  }
  if (!starts_.empty()) session.start = starts_.front();
  session.checkpoints = &checkpoints_;
  session_.emplace(file, observer, std::move(session));
  laid_.lay(session_->replayer());
  if (!options_.check) return;
  VerifiedFront::Options front;
  front.policy = options_.policy;
  front.every = options_.every;
  front.passed = [this](const Replayer& replayer) {
    if (laid_.lay(replayer)) front_->set_every(options_.every *= 2);
  };
  front.over_again = [this] {
    laid_.clear();
    near_.clear();
    over_again_ = true;
  };
  front.progress = options_.progress;
  // The run ahead may hold a REP that nobody wants to see the end of.
  front.pause = [this](Position now) { return now >= known_to_ || interruption_.due(); };
  front_.emplace(file, std::move(front));
}

// ---------------------------------------------------------------------------------------------
// Where one can begin

/// The last of the archive's checkpoints before the instruction; null where there is none. Strictly
/// before, as in Checkpoints::start_for(); the first is the beginning.
const Checkpoints::Start* ReplayTimeline::stored_before(std::uint64_t instruction) const {
  if (starts_.empty() || in_branch()) return nullptr;
  const auto later = std::partition_point(
      std::next(starts_.begin()), starts_.end(),
      [&](const Checkpoints::Start& s) { return s.instruction < instruction; });
  return &*std::prev(later);
}

void ReplayTimeline::restore(const Replayer::Checkpoint& checkpoint) {
  ReplaySession::Checkpoint c{checkpoint, std::nullopt, 0, std::nullopt};
  const Checkpoints::Start* const passed =
      stored_before(checkpoint.machine.position.instruction + 1);
  if (passed != nullptr) c.passed = *passed;
  session_->restore(c);
}

/// Goes to the last of these places, or stays where that is nearer and allowed.
void ReplayTimeline::begin_at(std::optional<Moment> laid, std::optional<Moment> near,
                              const Checkpoints::Start* stored, bool may_stay) {
  const bool is_near = near && (!laid || *near > *laid);
  const std::optional<Moment> kept = is_near ? near : laid;
  const std::uint64_t stored_at = stored != nullptr ? stored->instruction : 0;
  const bool nearer = !kept || moment() >= *kept;
  const bool diverged = report_.end == ReplayReport::End::diverged;
  report_ = {};
  if (may_stay && !diverged && nearer && position().instruction >= stored_at) return;
  if (stored != nullptr && (!kept || stored_at > kept->position.instruction)) {
    return session_->go_to(*stored, ~std::uint64_t{0});
  }
  CITCAT_ASSERT(kept.has_value());
  restore((is_near ? near_ : laid_).at(*kept));
}

// ---------------------------------------------------------------------------------------------
// One way

/// Has the run compared up to `to`, where that is wanted.
void ReplayTimeline::know(Position to) {
  if (!front_ || front_->ended() || in_branch()) return;
  if (front_->position() <= to) {
    const std::uint64_t ahead = std::min(to.instruction, ~kAhead);
    known_to_ = behind(to);
    front_->advance({(ahead / kAhead + 1) * kAhead, 0});
  }
  if (front_->adoptions().size() != adopted_) {
    adopted_ = front_->adoptions().size();
    session_->take_over(front_->adoptions());
  }
  if (front_->ended()) {
    divergence_ = front_->divergence();
    const Moment last = front_->moment();
    end_ = divergence_ ? Moment{0, std::min(divergence_->position, last.position)} : last;
  }
  if (!std::exchange(over_again_, false)) return;
  // What the first comparison did not take over may be missing here.
  const Moment here = moment();
  restore(laid_.first());
  if (here != Moment{}) come_back(here);
}

/// Goes to where the replay has been before: nobody is told of it again.
void ReplayTimeline::come_back(Moment here) {
  const auto silence = [this](bool on) {
    judge_.set_silent(on);
    if (options_.again) options_.again(on);
  };
  silence(true);
  try {
    go_to_last_before(behind(here));
  } catch (...) {
    silence(false);
    throw;
  }
  silence(false);
}

/// The run ends here, as the last report says.
void ReplayTimeline::note_end() {
  const std::optional<Divergence> left = report_.divergence;
  const Moment here = moment();
  if (!end_) {
    end_ = left ? Moment{0, here.position} : here;
    if (left) divergence_ = left;
  }
  // An instruction that was begun is left again.
  if (left) come_back(here);
}

/// As far towards `to` within a REP as is gone before somebody is asked: a replay whose end lies
/// within one does not ask on the way.
Position ReplayTimeline::part_of_way(Position to) const {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 19;
  if (!interruption_.is_asked()) return to;
  const Position here = position();
  const std::uint64_t from = here.instruction == to.instruction ? here.iteration : 0;
  const std::uint64_t iteration = std::min<std::uint64_t>(to.iteration, from + kAtOnce);
  return {to.instruction, static_cast<std::uint32_t>(iteration)};
}

/// Goes on to `to`; false where the run ends before, or is interrupted.
bool ReplayTimeline::run_to(Position to) {
  know(to);
  Position last = end_ ? std::min(to, end_->position) : to;
  if (front_ && !in_branch() && !front_->ended()) last = std::min(last, front_->position());
  while (position() < last) {
    const std::uint64_t next = (position().instruction / options_.every + 1) * options_.every;
    const Position stop = part_of_way(front_ ? last : std::min(last, Position{next, 0}));
    const Moment before = moment();
    left_early_ = false;
    report_ = session_->run_to(stop);
    const bool diverged = report_.end == ReplayReport::End::diverged;
    if (!diverged && left_early_ && position() < stop) break;
    if (diverged || position() < stop || moment() == before) {
      if (!end_) note_end();
      break;
    }
    if (stop < last && stop.iteration != 0 && interruption_.due()) break;
    if (!front_ && position() == Position{next, 0} && laid_.lay(session_->replayer())) {
      options_.every *= 2;
    }
  }
  if (end_ && to > end_->position) deliver_last();
  return position() >= to;
}

bool ReplayTimeline::is_at_end() const {
  if (!end_ || position() < end_->position) return false;
  return position() > end_->position || moment().deliveries >= end_->deliveries;
}

/// Has delivered what the run ends with, such as the faults that shut the processor down: that has
/// the position of the end, where every way there stops before it.
void ReplayTimeline::deliver_last() {
  while (position() == end_->position && !is_at_end()) {
    const Moment before = moment();
    report_ = session_->step();
    if (report_.end == ReplayReport::End::diverged || moment() == before) return;
  }
}

/// False where there is nothing further.
bool ReplayTimeline::go_one_further() {
  know(behind(position()));
  if (is_at_end()) return false;
  const Moment before = moment();
  report_ = session_->step();
  return report_.end != ReplayReport::End::diverged && moment() != before;
}

ReplayReport ReplayTimeline::seek(Position to, const Interrupt& interrupt) {
  const Interruption::Asking asking(interruption_, interrupt);
  know(to);
  if (to.instruction == 0) {
    restore(laid_.first());
    report_ = {};
  } else {
    begin_at(laid_.before_instruction(to.instruction), near_.before_instruction(to.instruction),
             stored_before(to.instruction), position().instruction < to.instruction);
  }
  if (!run_to(to) && divergence_) {
    report_.end = ReplayReport::End::diverged;
    report_.divergence = divergence_;
  } else if (position() == Position{}) {
    report_ = session_->run_to(position());
  }
  return report_;
}

void ReplayTimeline::rewind() {
  restore(laid_.first());
  report_ = {};
}

bool ReplayTimeline::step() {
  std::vector<StopHit> met;
  return step({}, met);
}

bool ReplayTimeline::step(const StopSet& stops, std::vector<StopHit>& met) {
  know(behind(position()));  // which may replay what is not to be looked at
  const Moment before = moment();
  if (!stops.memory.empty()) judge_.begin({.stops = &stops, .from = before, .all = &met});
  const bool further = go_one_further();
  judge_.end();
  if (further) return true;
  if (!end_ || report_.divergence) note_end();
  // What comes after the instruction may be what goes wrong: an interrupt that cannot be
  // delivered.
  const bool moved = moment() != before;
  if (!moved) met.clear();
  return moved;
}

// ---------------------------------------------------------------------------------------------
// The other way

/// Goes on to `to`, and leaves checkpoints near it for who comes back.
void ReplayTimeline::approach(Position to) {
  for (const std::uint64_t distance : kNearDistances) {
    if (to.instruction < distance + position().instruction + distance) continue;
    run_to({to.instruction - distance, 0});
    if (near_.size() >= kNear) near_.clear();
    near_.lay(session_->replayer());
  }
  run_to(to);
}

/// Within a REP goes as far as it can many iterations at a time, and stays before `bound`.
void ReplayTimeline::skip_iterations(Moment bound) {
  Replayer::Checkpoint base = session_->replayer().checkpoint();
  Moment here = moment();
  std::uint32_t stride = kManyIterations;
  while (stride != 0) {
    Moment there = here;
    there.position.iteration += stride;
    run_to(there.position);
    if (moment() == there && there < bound) {
      base = session_->replayer().checkpoint();
      here = there;
      stride *= 2;
    } else {
      restore(base);
      report_ = {};
      stride /= 4;
    }
  }
}

/// Goes to the last place before `bound` where the replay can be; something is before it.
void ReplayTimeline::go_to_last_before(Moment bound) {
  const Interruption::Asking nobody(interruption_);
  const auto begin = [&] {
    begin_at(laid_.before(bound), near_.before(bound), stored_before(bound.position.instruction),
             moment() < bound);
  };
  begin();
  const Position near = boundary_before(bound.position);
  if (position() < near) approach(near);
  if (moment() >= bound) {
    // An interrupt that is due at that position has been delivered when one arrives there.
    begin();
    const Position before = boundary_before(near);
    if (position() < before) approach(before);
  }
  CITCAT_ASSERT(moment() < bound);
  Replayer::Checkpoint base = session_->replayer().checkpoint();
  for (std::uint64_t steps = 0;; ++steps) {
    if (position().iteration >= kManyIterations) {
      skip_iterations(bound);
      base = session_->replayer().checkpoint();
      steps = 0;
    }
    if (go_one_further() && moment() < bound) continue;
    restore(base);
    report_ = {};
    for (; steps != 0; --steps) go_one_further();
    return;
  }
}

bool ReplayTimeline::step_back() {
  const Moment here = moment();
  if (here == laid_.first_moment()) return false;
  go_to_last_before(here);
  return true;
}

// ---------------------------------------------------------------------------------------------
// To what is looked for

bool ReplayTimeline::step_back(const StopSet& stops, std::vector<StopHit>& met) {
  if (!step_back()) return false;
  if (!stops.memory.empty()) met = met_by_next_step(stops);
  return true;
}

/// What the step from here accesses; stays here.
std::vector<StopHit> ReplayTimeline::met_by_next_step(const StopSet& stops) {
  std::vector<StopHit> met;
  const std::size_t here = mark();
  step(stops, met);
  return_to(here);
  forget(here);
  return met;
}

/// Before the instruction, or after what it accesses.
void ReplayTimeline::go_to_hit(const StopHit& hit) {
  const bool is_first = hit.outside && hit.at == laid_.first_moment();
  if (is_first) {
    // Nothing has been delivered there yet.
    restore(laid_.first());
    report_ = {};
    return;
  }
  go_to_last_before(hit.outside ? hit.at : behind(hit.at));
}

ReplayTimeline::Stop ReplayTimeline::run_to_stop(const StopSet& stops, const Interrupt& interrupt) {
  const Interruption::Asking asking(interruption_, interrupt);
  for (std::uint64_t slice = kFirstSlice;; slice = std::min(slice * 4, kLongestSlice)) {
    if (interruption_.due()) return {Stop::Why::interrupted};
    const Moment from = moment();
    if (near_.size() >= kNear) near_.clear();
    near_.lay(session_->replayer());
    const Position to{from.position.instruction + slice, 0};
    know(to);
    if (!stops.empty()) judge_.begin({&stops, from, false});
    const bool goes_on = run_to(to);
    const std::optional<StopHit> hit = judge_.end();
    if (hit) {
      go_to_hit(*hit);
      Stop stop{Stop::Why::hit, hit};
      if (hit->kind == StopHit::Kind::code || step(stops, stop.met)) return stop;
      return {Stop::Why::end};  // the instruction is begun and never completes
    }
    if (!goes_on && !interruption_.happened()) return {Stop::Why::end};
  }
}

/// Goes on to `bound`, or a little further: several moments may have its position.
void ReplayTimeline::search_up_to(Moment bound) {
  constexpr std::uint32_t kIterations = 4096;
  run_to(bound.position);
  while (moment() < bound && !interruption_.due()) {
    const Moment before = moment();
    if (before.position.iteration != 0) {
      run_to({before.position.instruction, before.position.iteration + kIterations});
    }
    if (moment() == before && !go_one_further()) return;  // the run ends here
  }
}

/// Replays the last `span` instructions before `bound` and looks for nothing but whether something
/// is stored to `watched`. Moves `bound` back to where nothing is from there on: after the last
/// stretch in which something may be, or to the beginning of them all.
ReplayTimeline::Stored ReplayTimeline::narrow(const MemoryWatch& watched, std::uint64_t span,
                                              Moment& bound) {
  const std::uint64_t whole = bound.position.instruction;
  const std::uint64_t first = whole - std::min(span, whole);
  if (const std::optional<Moment> laid = laid_.before_instruction(first)) {
    begin_at(laid, std::nullopt, stored_before(first), false);
  } else {
    restore(laid_.first());
    report_ = {};
  }
  Moment last = moment();
  Stored result = Stored::nowhere;
  for (bool goes_on = true; goes_on && moment() < bound;) {
    judge_.set_trap(&watched);
    const Moment before = moment();
    const Position next{before.position.instruction + options_.every, 0};
    if (next < bound.position) {
      run_to(next);
    } else {
      search_up_to(bound);
    }
    goes_on = moment() != before;
    if (judge_.trap_is_met()) {
      last = moment();
      result = Stored::perhaps;
    }
    if (interruption_.due()) {
      result = Stored::interrupted;
      break;
    }
  }
  judge_.set_trap(nullptr);
  if (result != Stored::interrupted) bound = std::min(last, bound);
  return result;
}

ReplayTimeline::Stop ReplayTimeline::run_back_to_stop(const StopSet& stops,
                                                      const Interrupt& interrupt) {
  const Interruption::Asking asking(interruption_, interrupt);
  Moment bound = moment();
  const auto interrupted = [&] {
    go_to_last_before(behind(bound));
    return Stop{Stop::Why::interrupted};
  };
  const std::optional<MemoryWatch> watched = stops.only_stores();
  // What is looked for is often near: the first stretch is looked through at once.
  bool is_first = true;
  std::uint64_t span = 0;
  while (bound != laid_.first_moment()) {
    if (interruption_.due()) return interrupted();
    if (watched && !std::exchange(is_first, false)) {
      span = std::min(std::max(span, options_.every) * 2, kLongestSpan);
      const Stored stored = narrow(*watched, span, bound);
      if (stored == Stored::interrupted) return interrupted();
      if (stored == Stored::nowhere) continue;
    }
    begin_at(laid_.before(bound), near_.before(bound), stored_before(bound.position.instruction),
             false);
    const Moment from = moment();
    if (!stops.empty()) {
      judge_.begin({&stops, from, true, bound});
      search_up_to(bound);
    }
    const std::optional<StopHit> hit = judge_.end();
    // The last one may be after.
    if (interruption_.happened()) return interrupted();
    if (hit) {
      go_to_hit(*hit);
      Stop stop{Stop::Why::hit, hit};
      if (hit->kind != StopHit::Kind::code) stop.met = met_by_next_step(stops);
      return stop;
    }
    bound = from;
  }
  restore(laid_.first());
  report_ = {};
  return {Stop::Why::end};
}

/// Tells `observer` of what the run does from `from` on while it goes on to `to`.
bool ReplayTimeline::tell_up_to(Moment to, Observer& observer, Position from, bool each,
                                const Interrupt& interrupt) {
  const Interruption::Asking asking(interruption_, interrupt);
  judge_.tell(&observer, from, each);
  bool whole = true;
  for (bool goes_on = true; whole && goes_on && position() < to.position;) {
    const Position next{position().instruction + kLongestSlice, 0};
    goes_on = run_to(std::min(to.position, next));
    whole = !interruption_.due();
  }
  if (whole) search_up_to(to);
  whole = !interruption_.happened();
  judge_.tell(nullptr, {}, false);
  return whole;
}

bool ReplayTimeline::tell(Position from, Moment to, Observer& observer, bool each,
                          const Interrupt& interrupt) {
  const Interruption::Asking asking(interruption_, interrupt);
  const std::size_t here = mark();
  const Position before = boundary_before(from);
  if (in_branch() || before == Position{}) {
    // Whoever seeks the first position arrives after what is delivered there.
    restore(laid_.first());
  } else {
    seek(before);
  }
  const bool whole = tell_up_to(to, observer, from, each, interrupt);
  return_to(here);
  forget(here);
  return whole;
}

// ---------------------------------------------------------------------------------------------
// Branches

/// What was known of the run means nothing for the one that begins here.
void ReplayTimeline::begin_anew_here() {
  laid_ = LaidCheckpoints(options_.max_frames);
  near_ = LaidCheckpoints(kNearFrames);
  laid_.lay(session_->replayer());
  end_.reset();
  divergence_.reset();
  report_ = {};
}

void ReplayTimeline::begin_branch() {
  CITCAT_ASSERT(!in_branch());
  aside_ = Aside{std::move(laid_), std::move(near_), end_, divergence_, mark()};
  begin_anew_here();
}

void ReplayTimeline::end_branch() {
  CITCAT_ASSERT(in_branch());
  Aside aside = *std::exchange(aside_, std::nullopt);
  laid_ = std::move(aside.laid);
  near_ = std::move(aside.near);
  end_ = aside.end;
  divergence_ = std::move(aside.divergence);
  return_to(aside.mark);
  forget(aside.mark);
}

void ReplayTimeline::change_registers(const CpuState& state) {
  CITCAT_ASSERT(in_branch());
  Replayer::Checkpoint checkpoint = session_->replayer().checkpoint();
  checkpoint.machine.cpu = state;
  checkpoint.machine.smbase = state.smbase;
  restore(checkpoint);
  begin_anew_here();
}

void ReplayTimeline::change_memory(PhysAddr address, std::span<const std::uint8_t> bytes) {
  CITCAT_ASSERT(in_branch());
  session_->memory_to_change().store(address, bytes);
  begin_anew_here();
}

std::size_t ReplayTimeline::mark() {
  marks_.emplace(++last_mark_, session_->replayer().checkpoint());
  return last_mark_;
}

void ReplayTimeline::return_to(std::size_t mark) {
  const auto found = marks_.find(mark);
  if (found == marks_.end()) throw UsageError("there is no such mark");
  restore(found->second);
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
