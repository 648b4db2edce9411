#include "replay/run/stop_judge.h"

#include <algorithm>
#include <utility>

namespace citcat {

std::optional<MemoryWatch> StopSet::only_stores() const {
  if (!code.empty() || memory.empty()) return std::nullopt;
  PhysAddr first = memory.front().address, end = first;
  for (const MemoryWatch& w : memory) {
    if (w.reads || w.address.page() != first.page()) return std::nullopt;
    first = std::min(first, w.address);
    end = std::max(end, w.address.plus32(w.size - 1));
  }
  return MemoryWatch{first, static_cast<std::uint32_t>(end.value - first.value) + 1, false, true};
}

void StopJudge::begin(const Search& search) {
  search_ = search;
  watches_reads_ = std::any_of(search.stops->memory.begin(), search.stops->memory.end(),
                               [](const MemoryWatch& w) { return w.reads; });
  deliveries_ = search.from.deliveries;
  delivering_.reset();
  hit_.reset();
}

std::optional<StopHit> StopJudge::end() {
  search_ = {};
  return std::exchange(hit_, std::nullopt);
}

void StopJudge::set_trap(const MemoryWatch* watched) {
  trap_ = {};
  if (watched == nullptr) return;
  trap_ = {watched->address, watched->size, false};
  machine_->memory().watch(watched->address.page());
}

Position StopJudge::expected() {
  return looks() || tells_each() ? Position{} : Position{~std::uint64_t{0}, 0};
}

bool StopJudge::counts(const StopHit& hit) const {
  if (hit.outside) return hit.at <= search_.before;
  if (hit.at >= search_.before) return false;
  if (hit.kind == StopHit::Kind::code && search_.all != nullptr) return false;
  return hit.kind != StopHit::Kind::code || hit.at != search_.from || search_.last;
}

bool StopJudge::is_watched(StopHit::Kind kind, PhysAddr a, std::uint32_t size) const {
  const std::vector<MemoryWatch>& watches = search_.stops->memory;
  return std::any_of(watches.begin(), watches.end(), [&](const MemoryWatch& w) {
    const bool wanted = kind == StopHit::Kind::write ? w.writes : w.reads;
    return wanted && overlap(a, size, w.address, w.size);
  });
}

void StopJudge::access(StopHit::Kind kind, PhysAddr a, std::uint32_t size, AccessKind why,
                       Moment at) {
  if (is_watched(kind, a, size)) meet({kind, at, false, why, instruction_, a, size});
}

// ---------------------------------------------------------------------------------------------
// Blocks

/// Hands over all that the block meets: of each instruction that it is about to run, then what it
/// reads, then what it stores.
template <class F>
void StopJudge::for_each_in(const JudgedBlock& block, Position first, F&& consider) {
  const auto hit = [&](StopHit::Kind kind, std::uint32_t i, PhysAddr a, std::uint32_t size) {
    const Moment at = moment({first.instruction + i, 0});
    consider(i, StopHit{kind, at, false, AccessKind::data, block.linear(i), a, size});
  };
  const std::vector<LinearAddr>& code = search_.stops->code;
  for (const JudgedPart& part : block.parts) {
    const LinearAddr begin = part.linear;
    const std::uint32_t count = part.count, bytes = part.begins[count];
    for (auto at = std::lower_bound(code.begin(), code.end(), begin);
         at != code.end() && at->minus32(begin) < bytes; ++at) {
      for (std::uint32_t i = 0; i < count; ++i) {
        if (part.begins[i] != at->minus32(begin)) continue;
        hit(StopHit::Kind::code, part.first + i, {}, 0);
      }
    }
  }
  for (const BlockRead& read : block.reads) {
    if (!is_watched(StopHit::Kind::read, read.address, read.size)) continue;
    hit(StopHit::Kind::read, read.instruction, read.address, read.size);
  }
  for (const BlockStore& store : block.stores) {
    if (!is_watched(StopHit::Kind::write, store.address, store.size)) continue;
    hit(StopHit::Kind::write, store.instruction, store.address, store.size);
  }
}

void StopJudge::look_at_block(const JudgedBlock& block, Position first) {
  std::optional<StopHit> best;
  std::uint32_t best_instruction = 0;
  for_each_in(block, first, [&](std::uint32_t instruction, const StopHit& hit) {
    if (!counts(hit)) return;
    if (search_.all != nullptr) return meet(hit);
    // Within an instruction they come in the order of time.
    const bool better =
        !best || (search_.last ? instruction >= best_instruction : instruction < best_instruction);
    if (!better) return;
    best = hit;
    best_instruction = instruction;
  });
  if (best) meet(*best);
}

void StopJudge::agreed(const JudgedBlock& block, Position first) {
  delivering_.reset();
  if (looks()) look_at_block(block, first);
}

std::uint32_t StopJudge::agreed_iterations(const StringIterations& run, Position) {
  if (tells_each()) return 0;
  if (!looks()) return run.count;
  std::uint32_t count = run.count;
  for (const MemoryWatch& w : search_.stops->memory) {
    // What touches a watched byte is told by itself.
    while (count != 0 && ((w.reads && run.read_within(0, count, w.address, w.size)) ||
                          (w.writes && run.store_within(0, count, w.address, w.size)))) {
      count /= 2;
    }
  }
  return count;
}

// ---------------------------------------------------------------------------------------------
// One by one

void StopJudge::fetch(PhysAddr a, std::uint32_t size, Position now) {
  if (tells_each(now)) observer_->fetch(a, size, now);
  delivering_.reset();
  if (!looks()) return;
  instruction_ = next();
  // Going on with a REP is not to begin it.
  if (now.iteration != 0) return;
  if (!std::binary_search(search_.stops->code.begin(), search_.stops->code.end(), instruction_))
    return;
  meet({StopHit::Kind::code, moment(now), false, AccessKind::data, instruction_, {}, 0});
}

void StopJudge::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  if (tells_each(now)) observer_->read(a, size, kind, now);
  if (!looks() || kind == AccessKind::walk) return;
  access(StopHit::Kind::read, a, size, kind, delivering_.value_or(moment(now)));
}

void StopJudge::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                      Position now) {
  if (tells_each(now)) observer_->write(a, bytes, kind, now);
  if (!looks()) return;
  // A handler's first instruction is walked for before it is told of.
  if (kind == AccessKind::walk && delivering_ && next() != interrupted_) delivering_.reset();
  if (!delivering_) instruction_ = next();
  access(StopHit::Kind::write, a, static_cast<std::uint32_t>(bytes.size()), kind,
         delivering_.value_or(moment(now)));
}

void StopJudge::translation_dropped(LinearAddr page, Position now) {
  if (tells(now)) observer_->translation_dropped(page, now);
}

void StopJudge::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  if (tells(now)) observer_->external_write(a, bytes, now);
  if (!looks()) return;
  // The address is as captured, and may mean several.
  const Memory& memory = machine_->memory();
  for (const MemoryWatch& w : search_.stops->memory) {
    const auto size = static_cast<std::uint32_t>(bytes.size());
    if (!w.writes || !overlap(a, size, memory.captured(w.address), w.size)) continue;
    meet({StopHit::Kind::write, moment(now), true, AccessKind::data, instruction_, a, size});
  }
}

void StopJudge::delivered(const DeliveredEvent& event, Position now) {
  if (tells(now)) observer_->delivered(event, now);
  if (search_.stops == nullptr) return;
  // A fault while another is delivered belongs to the same place.
  if (!delivering_) {
    delivering_ = moment(now);
    interrupted_ = next();
  }
  ++deliveries_;
}

// ---------------------------------------------------------------------------------------------
// Told on

void StopJudge::instruction(const ExecutedInstruction& e, Position now) {
  if (tells(now)) observer_->instruction(e, now);
}

void StopJudge::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  if (tells(now)) observer_->io_read(port, size, value, now);
}

void StopJudge::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                         Position now) {
  if (tells(now)) observer_->io_write(port, size, value, now);
}

void StopJudge::address_space(AddressSpaceId cr3, Position now) {
  if (tells(now)) observer_->address_space(cr3, now);
}

void StopJudge::halted(Position now) {
  if (tells(now)) observer_->halted(now);
}

void StopJudge::shutdown(Position now) {
  if (tells(now)) observer_->shutdown(now);
}

}  // namespace citcat
