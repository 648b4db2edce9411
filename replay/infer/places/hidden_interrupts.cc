#include "replay/infer/places/hidden_interrupts.h"

#include <algorithm>
#include <utility>

namespace citcat {

namespace {

constexpr std::uint64_t kNone = ~std::uint64_t{0};

}  // namespace

HiddenInterrupts::HiddenInterrupts(PlacementRun& run, const EvidenceSource& evidence,
                                   InterruptSurroundings& surroundings, CandidateWindow& window,
                                   TrialDecider& trials)
    : run_(run), surroundings_(surroundings), window_(window), trials_(trials) {
  if (run.has_cache()) return;
  const Recording& recording = run.recording();
  const bool shows_reads = recording.bus.form == CacheForm::none;
  order_ = std::make_unique<StoreOrder>(evidence, shows_reads, PortCount(recording));
}

/// The replay has made the marker's access and everything before it, all as on the bus.
bool HiddenInterrupts::passed_marker() const {
  if (target().kind != Interrupt::Kind::on_chip) return false;
  const AnchorGate::Progress& made = run_.gate().progress();
  const BusAnchor& marker = target().anchor;
  if (made.io <= marker.io && made.writes <= marker.writes) return false;
  return run_.verifier().first_missing().value_or(kNone) > target().transaction;
}

/// Keeps the beginning and the last two places on the way, far enough apart to be worth it.
void HiddenInterrupts::keep_place(Position now) {
  constexpr std::uint64_t kApart = 1 << 14;
  if (now.instruction < next_place_) return;
  next_place_ = now.instruction + kApart;
  if (places_.size() == 3) places_.erase(places_.begin() + 1);
  places_.push_back(run_.here(false));
}

bool HiddenInterrupts::watch(Position now) {
  constexpr std::uint64_t kQuiet = 1 << 12;
  if (passed_marker()) return true;
  keep_place(now);
  const AnchorGate::Progress& made = run_.gate().progress();
  if (std::exchange(accesses_, made.stores + made.io) != accesses_) {
    quiet_since_ = now.instruction;
    loop_.begin();
  }
  if (now.instruction - quiet_since_ < kQuiet) return false;
  return loop_.went_round(run_.machine(), made.reads.size(), made.stores);
}

/// Runs on without the interrupt. Returns the first transaction that the replay does not make, all
/// ones where it makes the marker.
std::uint64_t HiddenInterrupts::run_without() {
  run_.gate().set_limit(nullptr);
  next_place_ = quiet_since_ = run_.position().instruction;
  loop_.begin();
  const ReplayReport report = run_.go([this](Position now) { return watch(now); });
  if (report.end == ReplayReport::End::complete) return kNone;
  if (report.end == ReplayReport::End::stopped && passed_marker()) return kNone;
  left_ = report.divergence;
  if (left_) {
    if (const auto missing = run_.verifier().first_missing()) return *missing;
  }
  const AnchorGate::Progress& made = run_.gate().progress();
  const auto next = order_->behind(made.writes, made.io);
  return next ? next->transaction : kNone;
}

const PlacementRun::Place* HiddenInterrupts::place_before(const BusAnchor& anchor) const {
  const auto before = [&](const PlacementRun::Place& p) {
    return p.gate.writes + p.gate.io < anchor.writes + anchor.io;
  };
  const auto place = std::find_if(places_.rbegin(), places_.rend(), before);
  if (place != places_.rend()) return &*place;
  const AnchorGate::Progress& first = places_.front().gate;
  const bool is_there = first.writes == anchor.writes && first.io == anchor.io;
  return is_there ? &places_.front() : nullptr;
}

/// A place where what it pushes begins with this store.
HiddenInterrupts::Found HiddenInterrupts::find_at_store(const StoreOrder::Access& access,
                                                        const PlacementRun::Place& before) {
  Found found;
  run_.go_back(before);
  run_.schedule().interrupts[interrupt_].anchor = access.anchor;
  surroundings_[interrupt_] = order_->around(access.transaction);
  found.candidates = window_.collect(interrupt_);
  if (found.candidates.groups.empty()) return found;
  found.placement = trials_.decide(found.candidates);
  if (found.candidates.groups.empty()) return found;
  found.kind = Found::Kind::place;
  return found;
}

HiddenInterrupts::Found HiddenInterrupts::find(std::size_t interrupt) {
  // What the program stores by itself may be what the interrupt pushes: its flags, for one.
  constexpr std::size_t kMaxTried = 6;
  interrupt_ = interrupt;
  left_.reset();
  Found found;
  if (!order_) {
    found.candidates.left.emplace();
    found.candidates.left->reason =
        "behind a write-back cache nothing shows an interrupt without an acknowledge";
    return found;
  }
  const BusAnchor marker = run_.recording().interrupts[interrupt].anchor;
  BusAnchor& anchor = run_.schedule().interrupts[interrupt].anchor;
  anchor = marker;
  places_.clear();
  places_.push_back(run_.here());
  const std::uint64_t first = run_without();
  if (run_.interrupted()) return found;
  if (target().kind == Interrupt::Kind::on_chip && first > target().transaction) {
    if (left_) run_.go_back(places_.front());
    found.kind = Found::Kind::absent;
    return found;
  }
  for (const StoreOrder::Access& access : order_->from(first, kMaxTried)) {
    const PlacementRun::Place* const before = place_before(access.anchor);
    if (before == nullptr) continue;
    found = find_at_store(access, *before);
    if (found.kind == Found::Kind::nowhere) continue;
    order_->pass(access);
    return found;
  }
  anchor = marker;
  found.candidates.left = left_;
  return found;
}

}  // namespace citcat
