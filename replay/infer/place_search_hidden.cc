// Interrupts whose place the bus does not show: of a device on the processor's chip, which is known
// by its handler's marker only, and NMI, which the processor may take later than its pin rises. The
// replay runs on without it; where it then leaves the evidence, the processor had begun to push.

#include <algorithm>
#include <utility>

#include "replay/infer/place_search.h"

namespace citcat {

namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

/// Bytes that an interrupt at the boundary pushes at most before its handler begins.
std::uint64_t frame_bytes(const CpuState& state) {
  constexpr std::uint32_t kFlagVm = 1u << 17;
  if ((state.cr0 & 1) == 0) return 6;
  // Intel SDM vol. 3, figure 21-5, and 6.12.1: with a change of stacks and without.
  if ((state.eflags & kFlagVm) != 0) return 36;
  return (state.segment[kCs].selector & 3) != 0 ? 20 : 12;
}

}  // namespace

bool PlaceSearch::is_hidden(std::size_t interrupt) const {
  const Interrupt::Kind kind = schedule_.interrupts[interrupt].kind;
  return kind == Interrupt::Kind::on_chip || (kind == Interrupt::Kind::nmi && !cache_);
}

/// Nothing says how far a trial may go before the interrupt after the one looked for is missing.
bool PlaceSearch::next_is_hidden() const {
  if (target_ + 1 >= schedule_.interrupts.size()) return false;
  const Interrupt& next = schedule_.interrupts[target_ + 1];
  return next.kind == Interrupt::Kind::on_chip && !next.position_known;
}

/// In the trial that has ended everything that the interrupt pushed at `group` was on the bus.
bool PlaceSearch::frame_agreed(const BoundaryGroup& group) const {
  const AnchorGate::Progress& made = gate_.progress();
  const BusAnchor& anchor = target().anchor;
  return made.io > anchor.io || made.writes > anchor.writes + frame_bytes(group.state);
}

/// The address of the interrupt's entry in its table, as captured. The replay stands where the
/// interrupt may be, at window_, and does so again afterwards.
std::uint32_t PlaceSearch::first_read_of_delivery() {
  set_position(target_, replayer_->machine().position());
  mode_ = Mode::deliver;
  gate_.set_limit(nullptr);
  gate_.forget_system_reads();
  sinks_.mute(verifier_.get());
  go();
  sinks_.mute(nullptr);
  set_position(target_, std::nullopt);
  go_back(*window_);
  mode_ = Mode::collect;
  gate_.set_limit(&target().anchor);
  return gate_.first_system_read().value_or(~std::uint32_t{0});
}

/// The replay has made the marker's access and everything before it, all as on the bus.
bool PlaceSearch::passed_marker() const {
  if (target().kind != Interrupt::Kind::on_chip) return false;
  const AnchorGate::Progress& made = gate_.progress();
  const BusAnchor& marker = target().anchor;
  if (made.io <= marker.io && made.writes <= marker.writes) return false;
  return verifier_->first_missing().value_or(kNowhere) > target().transaction;
}

/// Keeps the beginning and the last two places on the way, far enough apart to be worth it.
void PlaceSearch::keep_place(Position now) {
  constexpr std::uint64_t kApart = 1 << 14;
  if (now.instruction < next_place_) return;
  next_place_ = now.instruction + kApart;
  if (places_.size() == 3) places_.erase(places_.begin() + 1);
  places_.push_back(here(false));
}

bool PlaceSearch::watch_hidden(Position now) {
  constexpr std::uint64_t kQuiet = 1 << 12;
  if (passed_marker()) return true;
  keep_place(now);
  const AnchorGate::Progress& made = gate_.progress();
  if (std::exchange(accesses_, made.stores + made.io) != accesses_) {
    quiet_since_ = now.instruction;
    loop_.begin();
  }
  if (now.instruction - quiet_since_ < kQuiet) return false;
  endless_ = loop_.went_round(replayer_->machine(), made.reads.size(), made.stores);
  return endless_;
}

/// Runs on without the interrupt. Returns the first transaction that the replay does not make, all
/// ones where it makes the marker.
std::uint64_t PlaceSearch::run_without() {
  mode_ = Mode::run_on;
  gate_.set_limit(nullptr);
  endless_ = false;
  next_place_ = quiet_since_ = replayer_->machine().position().instruction;
  loop_.begin();
  const ReplayReport report = go();
  if (report.end == ReplayReport::End::complete) return kNowhere;
  if (report.end == ReplayReport::End::stopped && passed_marker()) return kNowhere;
  left_ = report.divergence;
  if (left_) {
    if (const auto missing = verifier_->first_missing()) return *missing;
  }
  const auto next = order_->behind(gate_.progress().writes, gate_.progress().io);
  return next ? next->transaction : kNowhere;
}

const PlaceSearch::Place* PlaceSearch::place_before(const BusAnchor& anchor) const {
  const auto before = [&](const Place& p) {
    return p.gate.writes + p.gate.io < anchor.writes + anchor.io;
  };
  const auto place = std::find_if(places_.rbegin(), places_.rend(), before);
  if (place != places_.rend()) return &*place;
  const AnchorGate::Progress& first = places_.front().gate;
  const bool is_there = first.writes == anchor.writes && first.io == anchor.io;
  return is_there ? &places_.front() : nullptr;
}

/// Places it where what it pushes begins with this store; false when no boundary there fits.
bool PlaceSearch::place_at_store(const StoreOrder::Access& access) {
  const Place* const before = place_before(access.anchor);
  if (before == nullptr) return false;
  go_back(*before);
  schedule_.interrupts[target_].anchor = access.anchor;
  surroundings_[target_] = order_->around(access.transaction);
  collect(target_);
  PlacedEvent event;
  event.interrupt = target_;
  event.placement = Placement::unique;
  if (!groups_.empty()) decide_by_trial(event);
  if (groups_.empty()) return false;
  accept(std::move(event));
  order_->pass(access);
  return true;
}

/// The program comes to the marker by itself: there was no interrupt.
void PlaceSearch::dismiss() {
  schedule_.interrupts[target_].kind = Interrupt::Kind::none;
  PlacedEvent event;
  event.interrupt = target_;
  event.placement = Placement::absent;
  event.position = replayer_->machine().position();
  set_position(target_, event.position);
  report_.events.push_back(std::move(event));
}

/// False when no boundary fits.
bool PlaceSearch::place_hidden(std::size_t interrupt) {
  // What the program stores by itself may be what the interrupt pushes: its flags, for one.
  constexpr std::size_t kMaxTried = 6;
  target_ = interrupt;
  window_.reset();
  left_.reset();
  if (!order_) {
    left_ = Divergence{};
    left_->reason = "behind a write-back cache nothing shows an interrupt without an acknowledge";
    return false;
  }
  schedule_.interrupts[interrupt].anchor = markers_[interrupt];
  places_.clear();
  places_.push_back(here());
  const std::uint64_t first = run_without();
  const std::optional<Divergence> left = left_;
  if (target().kind == Interrupt::Kind::on_chip && first > target().transaction) {
    if (left) go_back(places_.front());
    dismiss();
    return true;
  }
  for (const StoreOrder::Access& access : order_->from(first, kMaxTried)) {
    if (place_at_store(access)) return true;
  }
  schedule_.interrupts[interrupt].anchor = markers_[interrupt];
  left_ = left;
  return false;
}

}  // namespace citcat
