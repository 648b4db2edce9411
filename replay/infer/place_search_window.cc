// Of the search for interrupts: which boundaries fit what stands before the interrupt.

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "events/cpu_traits.h"
#include "replay/infer/place_search.h"
#include "replay/x86/smm_save_map.h"

namespace citcat {

namespace {

constexpr std::uint32_t kFlagIf = 0x200;

}  // namespace

bool PlaceSearch::in_window() const {
  return replayer_->next_interrupt() == target_ && gate_.at(target().anchor) &&
         (!cache_ || cache_->at(target().transaction));
}

/// What must hold at the boundary the interrupt was taken at.
bool PlaceSearch::fits() const {
  const Machine& machine = replayer_->machine();
  const Engine& engine = machine.engine();
  if (target().is_maskable() && ((engine.system_flags() & kFlagIf) == 0 || engine.inhibited())) {
    return false;
  }
  if (is_counted() && !tally_->may_be(*target().count)) return false;
  if (cache_) return true;  // the frame stays in it
  const InterruptEvidence& after = surroundings_[target_];
  if (target().kind == Interrupt::Kind::smi || after.stored_bytes() == 0) return true;
  const std::uint32_t eip = engine.eip();
  if (after.stores(eip, eip > 0xffff ? 4 : 2)) return true;
  // An 8088 goes back to the last prefix of a string instruction only (8086 Family User's Manual,
  // 2.7), which may be one or two bytes further on.
  return machine.position().iteration != 0 &&
         cpu_traits(recording_.initial.model).keeps_one_prefix &&
         (after.stores((eip + 1) & 0xffff, 2) || after.stores((eip + 2) & 0xffff, 2));
}

bool PlaceSearch::registers_fit() const {
  const Engine& engine = replayer_->machine().engine();
  const auto now = [&](const KnownRegister& r) -> std::uint32_t {
    switch (r.kind) {
      case KnownRegister::Kind::general:
        return engine.gpr(r.number);
      case KnownRegister::Kind::segment:
        return engine.segment(r.number).selector;
      case KnownRegister::Kind::eip:
        break;
    }
    return engine.eip();
  };
  return std::all_of(registers_.begin(), registers_.end(),
                     [&](const KnownRegister& r) { return (now(r) & r.mask) == r.value; });
}

/// A register was stored whole at `stored`, as far as the bus shows it.
void PlaceSearch::know(KnownRegister r, PhysAddr stored, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto byte = surroundings_[target_].stored(stored + i);
    if (!byte) break;
    r.mask |= std::uint32_t{0xff} << (8 * i);
    r.value |= std::uint32_t{*byte} << (8 * i);
  }
  if (r.mask != 0) registers_.push_back(r);
}

/// An SMI stores the registers itself. Behind a cache the bus shows it where that memory is not
/// cached, which it seldom is.
void PlaceSearch::learn_saved_state() {
  const Machine& machine = replayer_->machine();
  if (!machine.smbase()) return;
  for (const SmmField& f : smm_save_map(target().vector).fields) {
    const PhysAddr at = f.address(*machine.smbase());
    if (f.item == SmmItem::gpr) know({KnownRegister::Kind::general, f.index, 0, 0}, at, 4);
    if (f.item == SmmItem::eip) know({KnownRegister::Kind::eip, 0, 0, 0}, at, 4);
  }
}

/// Lets the handler run from the first boundary that fits: whatever registers it saves on the way
/// that it takes from all of them tell which of them it was.
void PlaceSearch::learn_registers() {
  learned_ = true;
  if (target().kind == Interrupt::Kind::smi) return learn_saved_state();
  saves_.begin();
  sinks_.mute(verifier_.get());
  constexpr std::uint64_t kBytes = InterruptEvidence::kStoredBytes;
  run_from(groups_.front(), target().anchor.writes + kBytes);
  sinks_.mute(nullptr);
  saves_.end();
  std::unordered_set<std::uint32_t> seen;
  for (const SavedRegister& save : saves_.saves()) {
    // Of bytes stored twice the evidence keeps the first.
    std::uint32_t fresh = 0;
    while (fresh < save.size && seen.insert(save.address.value + fresh).second) ++fresh;
    using Kind = KnownRegister::Kind;
    know({save.is_segment ? Kind::segment : Kind::general, save.number, 0, 0}, save.address, fresh);
  }
}

bool PlaceSearch::reads_fit() const {
  if (!check_reads_) return true;
  std::vector<std::uint32_t> reads = gate_.progress().reads;
  if (reads.size() != expected_reads_.size()) return false;
  std::sort(reads.begin(), reads.end());
  return reads == expected_reads_;
}

/// Walks of page tables are left out: the processor's TLB need not be the replay's.
void PlaceSearch::expect_reads() {
  const auto& reads = surroundings_[target_].reads();
  check_reads_ = reads.has_value();
  expected_reads_.clear();
  if (!check_reads_) return;
  auto end = reads->end();
  if (is_hidden(target_)) {
    // What was read last are the interrupt table and what else a delivery reads.
    const auto table = std::find(reads->rbegin(), reads->rend(), first_read_of_delivery());
    check_reads_ = table != reads->rend();
    if (!check_reads_) return;
    end = table.base() - 1;
  }
  std::copy_if(reads->begin(), end, std::back_inserter(expected_reads_),
               [&](std::uint32_t a) { return !gate_.is_table(a); });
  std::sort(expected_reads_.begin(), expected_reads_.end());
}

bool PlaceSearch::watch(Position now) {
  if (cache_) {
    frames_.at_boundary();
    cache_->settle(now);
  }
  if (mode_ == Mode::log) return watch_handler(now);
  if (mode_ == Mode::run_on) return watch_hidden(now);
  if (mode_ == Mode::deliver) return replayer_->next_interrupt() != target_;
  if (mode_ == Mode::collect) return in_window() && stopped_at_ != now && watch_window(now);
  return gate_.progress().writes >= stop_writes_ || now.instruction >= stop_instruction_;
}

bool PlaceSearch::watch_window(Position now) {
  const std::size_t reads = gate_.progress().reads.size();
  // Where a count names the round of a loop, it need not come to anything new before.
  endless_ =
      !is_counted() && loop_.went_round(replayer_->machine(), reads, gate_.progress().stores);
  window_over_ = endless_ || (is_counted() && tally_->is_beyond(*target().count)) ||
                 (window_ && check_reads_ && reads > expected_reads_.size());
  if (!window_over_ && (!fits() || (window_ && (!registers_fit() || !reads_fit())))) return false;
  stopped_at_ = now;
  return true;
}

/// The boundary the replay stands at fits. False when there are too many to look at.
bool PlaceSearch::add_candidate() {
  // Behind a cache a window is long, and what keeps its boundaries apart is looked at cheaply.
  const std::size_t most = cache_ ? 1 << 14 : 1 << 11;
  CpuState state = replayer_->machine().save();
  state.msrs.clear();
  state.cpuid.clear();
  const Position now = replayer_->machine().position();
  // In a window without a cache nothing is stored.
  const std::uint64_t stores = gate_.progress().stores;
  const bool plainly = is_counted() && tally_->is_plainly(*target().count);
  std::vector<std::size_t>& alike = group_index_[stores << 32 ^ state.eip ^ state.gpr[kEcx]];
  for (const std::size_t i : alike) {
    BoundaryGroup& group = groups_[i];
    if (group.stores != stores || !(group.state == state)) continue;
    ++group.count;
    group.plainly_counted |= plainly;
    if (group.others.size() < kListedPositions) group.others.push_back(now);
    return true;
  }
  too_many_ = groups_.size() == most;
  if (too_many_) return false;
  alike.push_back(groups_.size());
  groups_.push_back({std::move(state), stores, now, boundaries_passed(), 1, {}, plainly});
  return true;
}

void PlaceSearch::collect_from_here() {
  for (;;) {
    const ReplayReport report = go();
    if (report.end == ReplayReport::End::diverged && !window_) left_ = report.divergence;
    const bool halted = replayer_->machine().halted() && in_window() && fits();
    if (gate_.closed() || (cache_ && cache_->closed()) || window_over_ ||
        report.end != ReplayReport::End::stopped)
      return;
    if (replayer_->machine().halted() ? !halted : stopped_at_ != replayer_->machine().position())
      return;
    if (!window_) {
      window_ = here();
      expect_reads();
      begin_log();
    }
    if (reads_fit() && registers_fit() && !add_candidate()) return;
    if (halted || (groups_.size() > 1 && !learned_)) return;
  }
}

/// Goes through the window again from its first boundary that fits.
void PlaceSearch::collect_again() {
  go_back(*window_);
  groups_.clear();
  group_index_.clear();
  begin_window();
  begin_log();
  collect_from_here();
}

void PlaceSearch::begin_log() {
  passed_.clear();
  passed_counted_ = passed_boundaries_ = 0;
  if (cache_) cache_->start_log(passed_, replayer_->machine().position());
}

void PlaceSearch::begin_window() {
  mode_ = Mode::collect;
  gate_.set_limit(&target().anchor);
  if (cache_) cache_->set_limit(target().transaction);
  stopped_at_.reset();
  window_over_ = endless_ = too_many_ = false;
  loop_.begin();
}

/// Runs through the window of an interrupt and collects the boundaries that fit.
void PlaceSearch::collect(std::size_t interrupt) {
  target_ = interrupt;
  window_.reset();
  left_.reset();
  groups_.clear();
  group_index_.clear();
  registers_.clear();
  check_reads_ = false;
  // Behind a cache only frames tell what a handler saved, and later.
  learned_ = cache_ && target().kind != Interrupt::Kind::smi;
  begin_window();
  collect_from_here();
  if (window_) narrow();
  if (cache_) cache_->stop_log();
}

/// Goes through the window again with what its interrupt stored.
void PlaceSearch::narrow() {
  if (groups_.size() > 1 && !learned_) {
    learn_registers();
    collect_again();
  }
  // What fits nowhere was taken for something it is not. The traffic decides alone.
  if (groups_.empty() && !registers_.empty()) {
    registers_.clear();
    collect_again();
  }
  if (groups_.empty() && check_reads_) {
    check_reads_ = false;
    collect_again();
  }
}

}  // namespace citcat
