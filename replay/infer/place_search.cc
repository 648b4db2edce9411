#include "replay/infer/place_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "formats/io/log.h"

namespace citcat {

namespace {

const Logger logger("place");

/// Instructions between two looks at the clock: some hundredths of a second.
constexpr std::uint64_t kBetweenLooks = 1 << 17;
/// Instructions further that count as a gain although no more interrupts have a place.
constexpr std::uint64_t kGain = 1 << 20;

}  // namespace

PlaceSearch::PlaceSearch(const Recording& recording, const EvidenceSource& evidence,
                         const PlacerOptions& options)
    : recording_(recording),
      schedule_(recording),
      options_(options),
      surroundings_(
          scan_interrupts(recording, recording.bus.form == CacheForm::none, *evidence())) {
  for (const Interrupt& i : recording.interrupts) {
    counted_.push_back(i.position_known);
    markers_.push_back(i.anchor);
  }
  auto reader = std::make_unique<RewindableEvidence>(evidence);
  evidence_ = reader.get();
  VerifierOptions verifying;
  verifying.policy = options.policy;
  verifying.reads = false;
  verifying.final_memory = false;
  verifying.schedule = &schedule_;
  verifying.policy.bit_changes = true;
  verifier_ = std::make_unique<Verifier>(recording, std::move(reader), verifying);
  if (recording.bus.form == CacheForm::none) gate_.follow_reads();
  if (recording.bus.form == CacheForm::write_back) {
    if (const CacheDescriptor* cache = declared_cache(recording.bus))
      follow_cache(evidence, *cache);
  }
  if (!cache_) {
    order_ = std::make_unique<StoreOrder>(evidence, recording.bus.form == CacheForm::none,
                                          PortCount(recording));
  }
  sinks_.add(gate_);
  if (const auto count = CountTally::first_count(recording)) {
    tally_.emplace(recording, *count);
    sinks_.add(*tally_);
  }
  sinks_.add(saves_);
  if (cache_) {
    sinks_.add(frames_);
    sinks_.add(*cache_);
  }
  sinks_.add(*verifier_);
  ReplayOptions replay;
  replay.evidence = evidence;
  if (options.progress || options.time != nullptr) {
    replay.progress = [&options](Position now) {
      if (options.progress) options.progress(now);
      if (options.time != nullptr && options.time->spent()) throw BudgetSpent();
      return true;
    };
    replay.progress_interval = kBetweenLooks;
  }
  replay.watch = [this](Position now) { return watch(now); };
  replayer_ = std::make_unique<Replayer>(recording, schedule_, &sinks_, std::move(replay));
  gate_.attach(replayer_->machine());
  if (tally_) tally_->attach(replayer_->machine());
  saves_.attach(replayer_->machine());
  verifier_->attach(replayer_->machine());
  if (cache_) {
    frames_.attach(replayer_->machine());
    cache_->attach(replayer_->machine());
  }
}

void PlaceSearch::follow_cache(const EvidenceSource& evidence, const CacheDescriptor& descriptor) {
  cache_ = std::make_unique<CacheFollower>(recording_, evidence, descriptor);
  cache_->on_write_back([this](const CacheFollower::Line& line) {
    const auto bytes = std::span(line.data).first(cache_->descriptor().line_bytes);
    for (const FrameWatch::Found& found : frames_.written_back(line.traffic.line, bytes)) {
      learn_frame(found);
    }
    if (mode_ != Mode::log && !open_.empty()) believe_rest(line.traffic.line, bytes);
  });
  gate_.behind(*cache_);
  gate_.on_delivery([this] {
    if (mode_ == Mode::log && log_begins_ == 0) log_begins_ = log_.after.size();
  });
}

std::optional<std::size_t> PlaceSearch::next_unplaced() const {
  for (std::size_t i = replayer_->next_interrupt(); i < schedule_.interrupts.size(); ++i) {
    if (!schedule_.interrupts[i].position_known) return i;
  }
  return std::nullopt;
}

/// Runs, and counts what that cost.
ReplayReport PlaceSearch::go() {
  if (options_.time != nullptr && options_.time->spent()) throw BudgetSpent();
  const std::uint64_t before = replayer_->machine().position().instruction;
  const ReplayReport report = replayer_->run();
  report_.instructions += report.instructions - std::min(before, report.instructions);
  if (mode_ != Mode::log && report.instructions > furthest_) {
    furthest_ = report.instructions;
    furthest_read_ = evidence_->position();
  }
  note_gain();
  return report;
}

/// More interrupts have places than ever before, or it is much further.
void PlaceSearch::note_gain() {
  if (report_.events.size() <= most_placed_ && furthest_ < gained_at_ + kGain) return;
  most_placed_ = std::max(most_placed_, report_.events.size());
  gained_at_ = furthest_;
  if (options_.time != nullptr) options_.time->gained();
}

/// Instructions of the whole run, as far as is known yet.
std::uint64_t PlaceSearch::expected_length() const {
  if (recording_.instructions) return *recording_.instructions;
  const double part = static_cast<double>(std::max<std::uint64_t>(furthest_read_, 1)) /
                      static_cast<double>(recording_.totals.transactions);
  return furthest_ +
         static_cast<std::uint64_t>(static_cast<double>(furthest_) * std::max(0.0, 1 / part - 1));
}

/// Whether the search may execute so many instructions more before it goes on from `place`, so that
/// all of it takes no longer than three replays.
bool PlaceSearch::may_spend(std::uint64_t instructions, const Place& place) const {
  constexpr std::uint64_t kMaxReplays = 3;
  if (!cache_) return true;
  const std::uint64_t length = expected_length();
  const std::uint64_t passed = std::min(length, place.replayer.machine.position.instruction);
  // What is left is gone through once to find windows and once from the boundary taken in each.
  return report_.instructions + instructions + 2 * (length - passed) <= kMaxReplays * length;
}

PlaceSearch::Place PlaceSearch::here(bool hold) {
  if (hold) evidence_->hold();
  Place place{replayer_->checkpoint(),
              verifier_->checkpoint(),
              gate_.progress(),
              evidence_->position(),
              tally_ ? tally_->state() : CountTally::State{},
              std::nullopt,
              {}};
  if (cache_) {
    place.cache = cache_->checkpoint();
    place.frames = frames_.state();
  }
  return place;
}

void PlaceSearch::go_back(const Place& place) {
  replayer_->restore(place.replayer);
  verifier_->restore(place.verifier);
  evidence_->seek(place.evidence);
  gate_.restore(place.gate);
  gate_.reopen();
  if (tally_) tally_->restore(place.counts);
  if (place.cache) {
    cache_->restore(*place.cache);
    frames_.restore(place.frames);
  }
}

void PlaceSearch::set_position(std::size_t interrupt, std::optional<Position> position) {
  Interrupt& event = schedule_.interrupts[interrupt];
  event.position_known = position.has_value();
  event.position = position.value_or(Position{});
}

/// Of the groups left, takes the first and goes on from there.
void PlaceSearch::accept(PlacedEvent event) {
  // What is doubtful is not often counted.
  if (tally_) {
    std::stable_partition(groups_.begin(), groups_.end(),
                          [](const BoundaryGroup& g) { return g.plainly_counted; });
  }
  describe(event, groups_);
  // What was not looked at may fit as well.
  if (too_many_) event.placement = Placement::ambiguous;
  event.more = event.candidates > 1 && (endless_ || too_many_);
  if (logger.at(LogLevel::debug)) {
    logger.write(fmt::format("interrupt {} at instruction {}, iteration {}: {} of {} boundaries",
                             event.interrupt, event.position.instruction, event.position.iteration,
                             placement_name(event.placement), event.candidates));
  }
  go_back(*window_);
  set_position(event.interrupt, event.position);
  const std::size_t number = report_.events.size();
  if (event.placement == Placement::ambiguous) {
    // For the case that something later refutes the choice; the latest are the likeliest.
    constexpr std::size_t kMaxChoices = 8;
    if (choices_.size() == kMaxChoices) choices_.erase(choices_.begin());
    choices_.push_back({number,
                        event.interrupt,
                        *window_,
                        {groups_.begin() + 1, groups_.end()},
                        passed_,
                        followed_far_,
                        groups_.front(),
                        std::exchange(exhausted_, false)});
  } else {
    evidence_->release();
    if (cache_) cache_->release();
  }
  if (cache_ && groups_.size() > 1) watch_frame(number);
  report_.events.push_back(std::move(event));
}

/// Of several groups, takes the first.
void PlaceSearch::describe(PlacedEvent& event, const std::vector<BoundaryGroup>& groups) const {
  const BoundaryGroup& chosen = groups.front();
  if (groups.size() == 1 && event.placement == Placement::unique && chosen.count > 1) {
    event.placement = Placement::equivalent;
  }
  event.position = chosen.first;
  event.others = chosen.others;
  event.candidates = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    event.candidates += groups[i].count;
    if (i != 0 && event.others.size() < kListedPositions) event.others.push_back(groups[i].first);
  }
}

/// Everything is placed. Where a choice was made, what is left of the evidence may refute it.
bool PlaceSearch::finish() {
  if (choices_.empty() && open_.empty()) return true;
  mode_ = Mode::trial;
  stop_writes_ = stop_instruction_ = ~std::uint64_t{0};
  gate_.set_limit(nullptr);
  if (cache_) cache_->set_limit(std::nullopt);
  left_ = go().divergence;
  return !left_ && !wrong_event_;
}

/// False when nothing fits.
bool PlaceSearch::place_next(std::size_t interrupt) {
  if (is_hidden(interrupt)) return place_hidden(interrupt);
  collect(interrupt);
  if (groups_.empty() || wrong_event_) return false;
  PlacedEvent event;
  event.interrupt = interrupt;
  event.placement = Placement::unique;
  if (groups_.size() > 1 && cache_) {
    followed_far_ = have_one_stack();
    keep_what_lines_fit(followed_far_);
    followed_far_ = have_one_stack();
    event.placement = groups_.size() > 1 ? Placement::ambiguous : Placement::unique;
  } else if (groups_.size() > 1) {
    decide_by_trial(event);
  }
  if (groups_.empty()) return false;
  accept(std::move(event));
  return true;
}

/// The run that followed the latest ambiguous choice left the evidence: takes the next one. False
/// when there is none.
bool PlaceSearch::revise() {
  constexpr unsigned kMaxRevisions = 64;
  if (choices_.empty() || (!cache_ && ++revisions_ > kMaxRevisions)) return false;
  Choice& last = choices_.back();
  if (!may_spend(0, last.window)) return false;
  if (cache_ && !last.followed_far && last.rest.size() > 2) {
    target_ = last.interrupt;
    window_ = last.window;
    groups_ = std::move(last.rest);
    passed_ = last.passed;
    keep_what_lines_fit(true);
    last.rest = std::move(groups_);
    last.followed_far = true;
  }
  take_back();
  return true;
}

/// Goes back to the latest choice and takes the first of what is left of it.
void PlaceSearch::take_back() {
  Choice choice = std::move(choices_.back());
  if (logger.at(LogLevel::info)) {
    logger.write(fmt::format("what follows refutes the place of interrupt {}: {} others left",
                             choice.interrupt, choice.rest.size()));
  }
  choices_.pop_back();
  while (report_.events.size() > choice.event) {
    const PlacedEvent& event = report_.events.back();
    set_position(event.interrupt, std::nullopt);
    if (event.placement == Placement::absent)
      schedule_.interrupts[event.interrupt].kind = Interrupt::Kind::on_chip;
    report_.events.pop_back();
  }
  std::erase_if(open_, [&](const auto& item) { return item.first >= choice.event; });
  std::erase_if(uncertain_, [&](std::size_t event) { return event >= choice.event; });
  if (order_) order_->restart();
  target_ = choice.interrupt;
  window_ = std::move(choice.window);
  groups_ = std::move(choice.rest);
  passed_ = std::move(choice.passed);
  followed_far_ = choice.followed_far;
  exhausted_ = choice.exhausted;
  endless_ = too_many_ = false;
  PlacedEvent event;
  event.interrupt = target_;
  event.placement = groups_.size() > 1 ? Placement::ambiguous : Placement::unique;
  accept(std::move(event));
}

void PlaceSearch::fail(std::size_t interrupt) {
  for (std::size_t i = interrupt; i < schedule_.interrupts.size(); ++i) {
    if (!counted_[i]) report_.events.push_back({i, Placement::none, {}, 0, false, {}});
  }
  if (left_) {
    report_.divergence = left_;
    return;
  }
  Divergence d;
  d.position = window_ ? window_->replayer.machine.position : replayer_->machine().position();
  d.transaction = schedule_.interrupts[interrupt].transaction;
  d.reason = window_ ? "what follows the interrupt fits none of the boundaries it may be at"
                     : "no instruction boundary fits what the interrupt stores";
  d.expected = "interrupt between the transactions around " + std::to_string(d.transaction);
  if (const auto& count = schedule_.interrupts[interrupt].count) {
    d.expected += fmt::format(", where {} {} are counted{}", count->value,
                              count_unit_name(count->unit), count->from_start ? "" : " in all");
  }
  report_.divergence = std::move(d);
}

/// Behind a write-back cache a place that was taken of several may be wrong without showing it
/// soon, and what was tried after it was tried in a run that may be another.
void PlaceSearch::qualify() {
  if (!cache_) return;
  auto event = std::find_if(report_.events.begin(), report_.events.end(), [](const PlacedEvent& e) {
    return e.placement == Placement::ambiguous;
  });
  if (event == report_.events.end()) return;
  for (++event; event != report_.events.end(); ++event) {
    if (event->placement == Placement::none) continue;
    event->placement = Placement::ambiguous;
    event->more = true;
  }
}

/// The time is spent, in the midst of anything.
PlacementReport PlaceSearch::give_up() {
  std::vector<bool> placed(schedule_.interrupts.size());
  for (const PlacedEvent& event : report_.events) placed[event.interrupt] = true;
  std::size_t first = placed.size();
  for (std::size_t i = placed.size(); i-- > 0;) {
    if (counted_[i] || placed[i]) continue;
    first = i;
    set_position(i, std::nullopt);
    schedule_.interrupts[i].anchor = markers_[i];
  }
  report_.given_up = options_.time->text();
  Divergence d;
  d.position = {furthest_, 0};
  d.reason = "the search for the places of interrupts was given up: " + report_.given_up;
  if (first != placed.size()) d.transaction = schedule_.interrupts[first].transaction;
  left_ = std::move(d);
  fail(first);
  qualify();
  return report();
}

PlacementReport PlaceSearch::report() {
  report_.schedule = std::move(schedule_);
  return std::move(report_);
}

PlacementReport PlaceSearch::run() try {
  if (recording_.bus.form == CacheForm::write_back && !cache_) {
    left_ = Divergence{};
    left_->reason = "there is no model of the write-back cache, which hides what interrupts push";
    fail(*next_unplaced());
    return report();
  }
  for (;;) {
    const auto interrupt = next_unplaced();
    if (interrupt ? place_next(*interrupt) : finish()) {
      if (!interrupt) break;
      continue;
    }
    if (wrong_event_ ? correct() : revise()) continue;
    if (interrupt) fail(*interrupt);
    break;
  }
  qualify();
  return report();
} catch (const BudgetSpent&) {
  return give_up();
}

}  // namespace citcat
