#include "replay/infer/places/boundary_filters.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "events/machine/cpu_traits.h"
#include "replay/machine/code_place.h"
#include "x86/smm_save_map.h"

namespace citcat {

bool FrameFilter::fits(std::size_t interrupt) const {
  constexpr std::uint32_t kFlagIf = 0x200;
  const Interrupt& target = run_.interrupt(interrupt);
  const Machine& machine = run_.machine();
  const Engine& engine = machine.engine();
  if (target.is_maskable() && ((engine.system_flags() & kFlagIf) == 0 || engine.inhibited())) {
    return false;
  }
  if (run_.is_counted(interrupt) && !run_.counts().may_be(*target.count)) return false;
  if (run_.has_cache()) return true;  // the frame stays in it
  const InterruptEvidence& after = surroundings_[interrupt];
  if (target.kind == Interrupt::Kind::smi || after.stored_bytes() == 0) return true;
  // In long mode everything is pushed as eight bytes (SDM vol. 3, 6.14.2).
  if (in_long_mode(engine)) return after.stores(engine.rip(), 8);
  const std::uint32_t eip = engine.eip();
  if (after.stores(eip, eip > 0xffff ? 4 : 2)) return true;
  // An 8088 goes back to the last prefix of a string instruction only (8086 Family User's Manual,
  // 2.7), which may be one or two bytes further on.
  return machine.position().iteration != 0 &&
         cpu_traits(run_.recording().initial.model).keeps_one_prefix &&
         (after.stores((eip + 1) & 0xffff, 2) || after.stores((eip + 2) & 0xffff, 2));
}

void RegisterFilter::begin(std::size_t interrupt) {
  interrupt_ = interrupt;
  registers_.clear();
  // Behind a cache only frames say what a handler saved, and later.
  learned_ = run_.has_cache() && run_.interrupt(interrupt).kind != Interrupt::Kind::smi;
}

void RegisterFilter::learn(const Candidates& found) {
  learned_ = true;
  if (run_.interrupt(interrupt_).kind == Interrupt::Kind::smi) return learn_saved_state();
  learn_saves(found);
}

/// Behind a cache the bus shows it where that memory is not cached, which it seldom is.
void RegisterFilter::learn_saved_state() {
  const Machine& machine = run_.machine();
  if (!machine.smbase()) return;
  for (const SmmField& f : smm_save_map(run_.interrupt(interrupt_).vector).fields) {
    const PhysAddr at = f.address(*machine.smbase());
    if (f.item == SmmItem::gpr) know({Known::Kind::general, f.index, 0, 0}, at, 4);
    if (f.item == SmmItem::eip) know({Known::Kind::eip, 0, 0, 0}, at, 4);
  }
}

void RegisterFilter::learn_saves(const Candidates& found) {
  HandlerSaves& saves = run_.saves();
  saves.begin();
  run_.replay().compare(false);
  constexpr std::uint64_t kBytes = InterruptEvidence::kStoredBytes;
  run_.run_with(interrupt_, found.groups.front().first, *found.window,
                run_.interrupt(interrupt_).anchor.writes + kBytes);
  run_.replay().compare(true);
  saves.end();
  std::unordered_set<std::uint64_t> seen;
  for (const SavedRegister& save : saves.saves()) {
    // Where bytes are stored twice the evidence keeps the first.
    std::uint32_t fresh = 0;
    while (fresh < save.size && seen.insert(save.address.plus32(fresh).value).second) ++fresh;
    using Kind = Known::Kind;
    know({save.is_segment ? Kind::segment : Kind::general, save.number, 0, 0}, save.address, fresh);
  }
}

/// A register was stored whole at `stored`, as far as the bus shows it.
void RegisterFilter::know(Known r, PhysAddr stored, std::uint32_t size) {
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto byte = surroundings_[interrupt_].stored(stored.plus32(i));
    if (!byte) break;
    r.mask |= std::uint64_t{0xff} << (8 * i);
    r.value |= std::uint64_t{*byte} << (8 * i);
  }
  if (r.mask != 0) registers_.push_back(r);
}

std::uint64_t RegisterFilter::now(const Known& r) const {
  const Engine& engine = run_.machine().engine();
  switch (r.kind) {
    case Known::Kind::general:
      return whole_gpr(engine, r.number);
    case Known::Kind::segment:
      return engine.segment(r.number).selector;
    case Known::Kind::eip:
      break;
  }
  return whole_ip(engine);
}

bool RegisterFilter::fits() const {
  return std::all_of(registers_.begin(), registers_.end(),
                     [&](const Known& r) { return (now(r) & r.mask) == r.value; });
}

bool ReadFilter::fits() const {
  if (!asks_) return true;
  std::vector<std::uint64_t> sorted = reads();
  if (sorted.size() != expected_.size()) return false;
  std::sort(sorted.begin(), sorted.end());
  return sorted == expected_;
}

/// The address of the interrupt's entry in its table, as captured.
std::uint32_t ReadFilter::first_read_of_delivery(std::size_t interrupt,
                                                 const PlacementRun::Place& window) {
  run_.set_position(interrupt, run_.position());
  AnchorGate& gate = run_.gate();
  gate.set_limit(nullptr);
  gate.forget_system_reads();
  run_.replay().compare(false);
  run_.go([&](Position) { return run_.next_interrupt() != interrupt; });
  run_.replay().compare(true);
  run_.set_position(interrupt, std::nullopt);
  run_.go_back(window);
  gate.set_limit(&run_.interrupt(interrupt).anchor);
  return gate.first_system_read().value_or(~std::uint32_t{0});
}

/// Walks of page tables are left out: the processor's TLB need not be the replay's.
void ReadFilter::expect(std::size_t interrupt, const PlacementRun::Place& window) {
  const auto& shown = surroundings_[interrupt].reads();
  asks_ = shown.has_value();
  expected_.clear();
  if (!asks_) return;
  auto end = shown->end();
  if (run_.is_hidden(interrupt)) {
    // What was read last are the interrupt table and what else a delivery reads.
    const auto table =
        std::find(shown->rbegin(), shown->rend(), first_read_of_delivery(interrupt, window));
    asks_ = table != shown->rend();
    if (!asks_) return;
    end = table.base() - 1;
  }
  std::copy_if(shown->begin(), end, std::back_inserter(expected_),
               [&](std::uint64_t a) { return !run_.gate().is_table(PhysAddr{a}); });
  std::sort(expected_.begin(), expected_.end());
}

}  // namespace citcat
