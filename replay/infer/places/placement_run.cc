#include "replay/infer/places/placement_run.h"

#include <algorithm>
#include <utility>

namespace citcat {

namespace {

/// Instructions between two looks at the clock: some hundredths of a second.
constexpr std::uint64_t kBetweenLooks = 1 << 17;

VerifierOptions verifying(const PlacerOptions& options) {
  VerifierOptions verifying;
  verifying.policy = options.policy;
  verifying.policy.bit_changes = true;
  verifying.reads = false;
  verifying.final_memory = false;
  return verifying;
}

}  // namespace

PlacementRun::PlacementRun(const Recording& recording, const EvidenceSource& evidence,
                           const PlacerOptions& options)
    : recording_(recording),
      schedule_(recording),
      options_(options),
      gate_(PortCount(recording)),
      effort_(recording, options.time) {
  const CacheForm form = recording.bus.form;
  const CacheDescriptor* const cache =
      form == CacheForm::write_back ? declared_cache(recording.bus) : nullptr;
  if (cache != nullptr) cache_ = std::make_unique<CacheFollower>(recording, evidence, *cache);
  if (cache_) gate_.behind(*cache_);
  if (form == CacheForm::none) gate_.follow_reads();
  RewindableReplay::Options replay;
  replay.verifying = verifying(options);
  replay.observers = {&gate_};
  if (const auto count = CountTally::first_count(recording)) {
    replay.observers.push_back(&tally_.emplace(recording, *count));
  }
  replay.observers.push_back(&saves_);
  if (cache_) replay.observers.push_back(&frames_);
  if (options.progress || options.time != nullptr) {
    replay.replay.progress = [this](Position now) { return look_at_clock(now); };
    replay.replay.progress_interval = kBetweenLooks;
  }
  replay.replay.watch = [this](Position now) { return watch(now); };
  replay_ = std::make_unique<RewindableReplay>(recording, schedule_, evidence, std::move(replay));
  gate_.ends(machine().control());
  if (cache_) machine().set_walk_policy(cache_->descriptor().walks);
}

bool PlacementRun::look_at_clock(Position now) {
  if (options_.progress) options_.progress(now);
  return !effort_.look_at_clock();
}

bool PlacementRun::watch(Position now) {
  if (cache_) {
    frames_.at_boundary();
    if (!cache_->settle(now)) {
      machine().control().stop_before(now);
      return true;
    }
  }
  return stopped_ || (*watch_)(now);
}

ReplayReport PlacementRun::go(const Watch& watch) {
  effort_.look_at_clock();
  const std::uint64_t before = position().instruction;
  if (interrupted()) {
    ReplayReport nothing;
    nothing.end = ReplayReport::End::stopped;
    nothing.instructions = before;
    return nothing;
  }
  watch_ = &watch;
  const ReplayReport report = replay_->run();
  watch_ = nullptr;
  effort_.add_instructions(report.instructions - std::min(before, report.instructions));
  if (!supposes_) effort_.come_to(report.instructions, replay_->transactions_read());
  effort_.note_gain();
  return report;
}

ReplayReport PlacementRun::run_with(std::size_t interrupt, Position at, const Place& window,
                                    std::uint64_t writes) {
  const std::uint64_t most = next_is_hidden(interrupt) ? 1 << 16 : 1 << 20;
  go_back(window);
  set_position(interrupt, at);
  gate_.set_limit(next_is_hidden(interrupt) ? nullptr : limit_behind(interrupt));
  const ReplayReport report = go([&](Position now) {
    return gate_.progress().writes >= writes || now.instruction >= at.instruction + most;
  });
  set_position(interrupt, std::nullopt);
  return report;
}

ReplayReport PlacementRun::run_to_end() {
  set_limits(std::nullopt);
  return go([](Position) { return false; });
}

const BusAnchor* PlacementRun::limit_behind(std::size_t interrupt) const {
  const std::size_t next = interrupt + 1;
  const bool open = next < schedule_.interrupts.size() && !this->interrupt(next).position_known;
  return open ? &this->interrupt(next).anchor : nullptr;
}

bool PlacementRun::is_hidden(std::size_t interrupt) const {
  const Interrupt::Kind kind = this->interrupt(interrupt).kind;
  return kind == Interrupt::Kind::on_chip || (kind == Interrupt::Kind::nmi && !cache_);
}

bool PlacementRun::next_is_hidden(std::size_t interrupt) const {
  const std::size_t next = interrupt + 1;
  if (next >= schedule_.interrupts.size()) return false;
  return this->interrupt(next).kind == Interrupt::Kind::on_chip &&
         !this->interrupt(next).position_known;
}

bool PlacementRun::in_window(std::size_t interrupt) {
  const Interrupt& target = this->interrupt(interrupt);
  return next_interrupt() == interrupt && gate_.at(target.anchor) &&
         (!cache_ || cache_->at(target.transaction));
}

void PlacementRun::set_limits(std::optional<std::size_t> interrupt) {
  gate_.set_limit(interrupt ? &this->interrupt(*interrupt).anchor : nullptr);
  if (!cache_) return;
  cache_->set_limit(interrupt ? std::optional(this->interrupt(*interrupt).transaction)
                              : std::nullopt);
}

void PlacementRun::suppose(bool supposes) {
  supposes_ = supposes;
  replay_->compare(!supposes);
  if (cache_) cache_->ignore_bus(supposes);
}

std::optional<std::size_t> PlacementRun::next_unplaced() const {
  for (std::size_t i = next_interrupt(); i < schedule_.interrupts.size(); ++i) {
    if (!interrupt(i).position_known) return i;
  }
  return std::nullopt;
}

PlacementRun::Place PlacementRun::here(bool hold) {
  if (hold) replay_->hold();
  Place place{replay_->here(),
              gate_.progress(),
              tally_ ? tally_->state() : CountTally::State{},
              nullptr,
              {}};
  if (cache_) {
    place.cache = std::make_shared<const CacheFollower::Checkpoint>(cache_->checkpoint());
    place.frames = frames_.state();
  }
  return place;
}

void PlacementRun::go_back(const Place& place) {
  replay_->go_back(place.replay);
  gate_.restore(place.gate);
  gate_.reopen();
  if (tally_) tally_->restore(place.counts);
  if (place.cache) {
    cache_->restore(*place.cache);
    frames_.restore(place.frames);
  }
}

void PlacementRun::release() {
  replay_->release();
  if (cache_) cache_->release();
}

void PlacementRun::set_position(std::size_t interrupt, std::optional<Position> position) {
  Interrupt& event = schedule_.interrupts[interrupt];
  event.position_known = position.has_value();
  event.position = position.value_or(Position{});
}

}  // namespace citcat
