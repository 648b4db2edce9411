#include "replay/slice/slice_walk.h"

#include <algorithm>
#include <utility>

#include "events/machine/address.h"
#include "replay/slice/far_flow.h"
#include "replay/slice/slice_delivery.h"

namespace citcat {
namespace {

using Of = ValueSpan::Of;

SliceWay farther(SliceWay a, SliceWay b) { return std::max(a, b); }

bool is_in_stack_pointer(unsigned place) {
  return place >= place::kGprs + 8 * kEsp && place < place::kGprs + 8 * kEsp + 8;
}

}  // namespace

void SliceWalk::Demand::clear() {
  places.clear();
  memory.clear();
  input = false;
  input_way = SliceWay::control;
}

void SliceWalk::Met::clear() {
  places.clear();
  memory.clear();
  place_bits.clear();
  memory_bits.clear();
  nearest = SliceWay::control;
}

void SliceWalk::Met::add_place(unsigned number, SliceWay way, std::uint8_t bits) {
  places.push_back(static_cast<std::uint16_t>(number));
  place_bits.push_back(bits);
  nearest = std::min(nearest, way);
}

void SliceWalk::Met::add_memory(const SliceMemory& byte, SliceWay way, std::uint8_t bits) {
  memory.push_back(byte);
  memory_bits.push_back(bits);
  nearest = std::min(nearest, way);
}

std::uint8_t SliceWalk::Met::bits_of(PhysAddr byte) const {
  std::uint8_t bits = 0;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i].physical == byte) bits |= memory_bits[i];
  }
  return bits;
}

void SliceWalk::want(PlaceRange range, SliceWay way, std::uint8_t bits) {
  for (unsigned i = 0; i < range.count; ++i) {
    const unsigned number = range.first + i;
    if (way != SliceWay::value && !query_.stack_pointer && is_in_stack_pointer(number)) {
      ++slice_.stack_pointer_given;
      continue;
    }
    live_.want_place(number, way, bits);
  }
}

bool SliceWalk::done() const {
  return live_.empty() &&
         std::find(wants_branch_.begin(), wants_branch_.end(), true) == wants_branch_.end();
}

bool SliceWalk::go_back(const SliceLog& log) {
  const std::span<const LogEntry> entries = log.entries();
  for (std::size_t i = entries.size(); i-- != 0;) {
    const LogEntry& entry = entries[i];
    switch (entry.kind) {
      case LogEntry::Kind::code:
        code(log, entry);
        break;
      case LogEntry::Kind::iterations:
        iterations(log, entry);
        break;
      case LogEntry::Kind::delivery:
        pass_foreign_behind(entry.first);
        SliceDelivery(*this, log.event(entry), log.accesses(entry)).go_back(entry.first);
        pass_foreign_of(entry.first);
        break;
      case LogEntry::Kind::external:
        external(log, entry);
        break;
      case LogEntry::Kind::unfinished:
        pass_foreign_behind(entry.first);
        unfinished(log, entry);
        break;
    }
    if (done()) return true;
    if (is_full()) {
      slice_.complete = false;
      const bool within = entry.kind == LogEntry::Kind::iterations;
      slice_.reached = within ? slice_.steps.back().position : entry.first;
      return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------------------------------------
// Instructions

bool SliceWalk::touches_live(const ValueFlow& flow, std::span<const LoggedAccess> accesses,
                             std::uint32_t by) const {
  if ((flow.written & live_.places()).any()) return true;
  return std::any_of(accesses.begin(), accesses.end(), [&](const LoggedAccess& a) {
    return a.write && live_.any_of(a.physical.plus32(by), a.size);
  });
}

void SliceWalk::code(const SliceLog& log, const LogEntry& entry) {
  const CodePiece& piece = log.piece(entry);
  const std::span<const LoggedAccess> accesses = log.accesses(entry);
  const bool by_registers = (piece.written() & live_.places()).any();
  const bool by_memory = std::any_of(accesses.begin(), accesses.end(), [&](const LoggedAccess& a) {
    return a.write && live_.any_of(a.physical, a.size);
  });
  const bool by_control = query_.control && piece.branches();
  const bool by_numbers = live_.wants_stack();
  const bool untold =
      piece.transfers_far() && !accesses.empty();  // only the run says what it wrote
  if (!by_registers && !by_memory && !by_control && !by_numbers && !untold && !query_.control) {
    return pass_foreign_of(entry.first);
  }
  std::size_t end = accesses.size();
  for (std::size_t i = piece.code.size(); i-- != 0;) {
    std::size_t begin = end;
    while (begin != 0 && accesses[begin - 1].instruction == i) --begin;
    Execution e;
    e.code = &piece.code[i];
    e.position = {entry.first.instruction + i, i == 0 ? entry.first.iteration : 0};
    pass_foreign_behind(e.position);
    e.ports = log.ports(entry);
    const auto mine = accesses.subspan(begin, end - begin);
    const std::optional<ValueFlow> told = far_flow(&e.code->info, mine, loads_, stores_);
    e.flow = told ? &*told : &piece.flow(i);
    follow_calls(e.code->info.kind);
    if (touches_live(*e.flow, mine, 0)) {
      if (!told) fill_streams(e.code->info, mine, 0, loads_, stores_);
      execution(e);
    } else if (e.flow->stack_moves != 0 || e.flow->uses_stack || e.flow->uses_mmx) {
      settle(e);
    }
    if (wants_branch() && e.flow->branch) {
      fill_streams(e.code->info, mine, 0, loads_, stores_);
      decision(e);
    }
    pass_foreign_of(e.position);
    end = begin;
  }
}

void SliceWalk::iterations(const SliceLog& log, const LogEntry& entry) {
  const CodePiece& piece = log.piece(entry);
  const std::span<const LoggedAccess> accesses = log.accesses(entry);
  const std::span<const LoggedPortRead> ports = log.ports(entry);
  Execution e;
  e.code = &piece.code.front();
  e.flow = &piece.flow(0);
  for (std::uint32_t i = entry.count; i-- != 0;) {
    const std::uint32_t by = i * entry.step;
    e.position = {entry.first.instruction, entry.first.iteration + i};
    pass_foreign_behind(e.position);
    if (!touches_live(*e.flow, accesses, by)) continue;
    e.ports = ports.size() == entry.count ? ports.subspan(i, 1) : ports;
    fill_streams(e.code->info, accesses, by, loads_, stores_);
    execution(e);
    if (is_full()) return;
    pass_foreign_of(e.position);
  }
  pass_foreign_of(entry.first);
}

std::uint32_t SliceWalk::length(const ValueSpan& span) const {
  const std::uint32_t there = span.of == Of::loads    ? loads_.size
                              : span.of == Of::stores ? stores_.size
                                                      : ~0u;
  if (span.first >= there) return 0;
  return std::min<std::uint32_t>(span.count == ValueSpan::kAll ? there : span.count,
                                 there - span.first);
}

void SliceWalk::demand_byte(const ValueSpan& span, std::uint32_t i, SliceWay way,
                            std::uint8_t bits) {
  if (span.of == Of::places) {
    demand_.places.push_back({static_cast<std::uint16_t>(span.first + i), way, bits});
  } else if (span.of == Of::loads) {
    demand_.memory.push_back({loads_.at(span.first + i), way, bits});
    touched_memory_ = true;
  }
}

void SliceWalk::demand_span(const ValueSpan& span, SliceWay way, std::uint8_t bits) {
  if (span.of == Of::input) {
    demand_.input_way = demand_.input ? std::min(demand_.input_way, way) : way;
    demand_.input = true;
    touched_memory_ = true;
    return;
  }
  const std::uint32_t count = length(span);
  for (std::uint32_t i = 0; i < count; ++i) demand_byte(span, i, way, bits);
}

/// Finds which bytes and bits that the effect writes matter, and adds the sources of these to the
/// demands.
void SliceWalk::effect(const ValueEffect& effect) {
  using When = ValueEffect::When;
  const bool loaded = effect.when == When::always || length(effect.told_by) != 0;
  if (loaded == (effect.when == When::not_loaded)) return;
  hits_.clear();
  SliceWay nearest = SliceWay::control;
  std::uint32_t base = 0;
  for (const ValueSpan& span : effect.to) {
    const std::uint32_t count = length(span);
    for (std::uint32_t i = 0; i < count; ++i) {
      Demand::Byte<std::uint32_t> hit{base + i};
      if (span.of == Of::places) {
        const unsigned number = span.first + i;
        hit.bits = live_.bits_of_place(number) & effect.to_bits;
        hit.way = static_cast<SliceWay>(live_.place(number));
        if (hit.bits != 0) met_.add_place(number, hit.way, hit.bits);
      } else {
        const SliceMemory byte = stores_.at(span.first + i);
        hit.bits = live_.bits_of_memory(byte.physical) & effect.to_bits;
        hit.way = static_cast<SliceWay>(live_.memory(byte.physical));
        if (hit.bits != 0) {
          met_.add_memory(byte, hit.way, hit.bits);
          touched_memory_ = true;
        }
      }
      if (hit.bits == 0) continue;
      hits_.push_back(hit);
      nearest = std::min(nearest, hit.way);
    }
    base += count;
  }
  if (hits_.empty()) return;
  const std::uint8_t bits = effect.from_bits != 0 ? effect.from_bits : 0xff;
  for (const ValueSpan& span : effect.whole) demand_span(span, nearest, bits);
  lanes(effect);
}

/// Bytes that it stored and its flow does not know: they came from nowhere else. True where there
/// are none that matter.
bool SliceWalk::meet_uncovered_stores() {
  const std::size_t known = met_.memory.size();
  for (std::uint32_t i = 0; i < stores_.size; ++i) {
    const SliceMemory byte = stores_.at(i);
    const auto bits = static_cast<std::uint8_t>(live_.bits_of_memory(byte.physical) &
                                                ~met_.bits_of(byte.physical));
    if (bits == 0) continue;
    met_.add_memory(byte, static_cast<SliceWay>(live_.memory(byte.physical)), bits);
  }
  return met_.memory.size() == known;
}

void SliceWalk::lanes(const ValueEffect& effect) {
  for (const ValueSpan& span : effect.lanes) {
    const std::uint32_t count = length(span);
    for (const auto& [byte, way, bits] : hits_) {
      if (byte >= count) continue;
      demand_byte(span, byte, way, effect.from_bits != 0 ? effect.from_bits : bits);
    }
  }
}

void SliceWalk::forget_met() {
  for (std::size_t i = 0; i < met_.places.size(); ++i) {
    live_.forget_place(met_.places[i], met_.place_bits[i]);
  }
  for (std::size_t i = 0; i < met_.memory.size(); ++i) {
    live_.forget_memory(met_.memory[i].physical, met_.memory_bits[i]);
  }
}

void SliceWalk::execution(const Execution& e) {
  met_.clear();
  demand_.clear();
  touched_memory_ = false;
  const bool numbered = e.flow->uses_stack || e.flow->uses_mmx;
  if (numbered && e.flow->uses_stack && std::exchange(fixed_numbers_, false)) {
    live_.spread_over_stack();
  }
  if (e.flow->uses_mmx) fixed_numbers_ = true;
  for (const ValueEffect& each : e.flow->effects) effect(each);
  const bool covered = meet_uncovered_stores();
  forget_met();
  live_.rotate_stack(e.flow->stack_moves);
  if (!met_.any()) return;
  if (touched_memory_ && query_.addresses) {
    const SliceWay way = farther(met_.nearest, SliceWay::address);
    for (const PlaceRange& range : e.flow->addresses) {
      demand_span({Of::places, range.first, range.count}, way);
    }
  }
  SliceStep& step = add_step(met_.nearest, e.position);
  step.linear = e.code->linear;
  step.physical = e.code->physical;
  step.code.assign(e.code->info.bytes.begin(), e.code->info.bytes.begin() + e.code->info.length);
  step.bits = code_segment_bits(e.code->info);
  step.approximate = e.flow->approximate || !covered;
  for (const std::uint16_t p : met_.places) {
    step.writes.set(p);
    const unsigned flag = p - place::kFlags;
    if (p >= place::kFlags && flag < 32 && (e.flow->undefined_flags >> flag & 1) != 0) {
      step.undefined.set(p);
    }
  }
  step.stores = met_.memory;
  merge(step.stores);
  apply_demand(step);
  add_code_input(*e.code, met_.nearest);
  if (demand_.input) add_port_input(e, demand_.input_way);
  if (query_.control) wants_branch_.back() = true;
}

/// It wrote nothing that matters, and may have numbered the register stack anew.
void SliceWalk::settle(const Execution& e) {
  if (e.flow->uses_stack && std::exchange(fixed_numbers_, false)) live_.spread_over_stack();
  if (e.flow->uses_mmx) fixed_numbers_ = true;
  live_.rotate_stack(e.flow->stack_moves);
}

void SliceWalk::apply_demand(SliceStep& step) {
  for (const auto& [place, way, bits] : demand_.places) {
    step.reads.set(place);
    want({place, 1}, way, bits);
  }
  for (const auto& [byte, way, bits] : demand_.memory) {
    step.loads.push_back(byte);
    live_.want_memory(byte.physical, way, bits);
  }
  merge(step.loads);
}

/// Bytes become pieces of memory.
void SliceWalk::merge(std::vector<SliceMemory>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const SliceMemory& a, const SliceMemory& b) { return a.physical < b.physical; });
  std::vector<SliceMemory> merged;
  for (const SliceMemory& p : pieces) {
    if (!merged.empty()) {
      SliceMemory& last = merged.back();
      if (p.physical.value < last.physical.value + last.size) continue;
      if (p.physical.value == last.physical.value + last.size) {
        last.size += p.size;
        continue;
      }
    }
    merged.push_back(p);
  }
  pieces = std::move(merged);
}

SliceStep& SliceWalk::add_step(SliceWay way, Position position) {
  SliceStep& step = slice_.steps.emplace_back();
  step.way = way;
  step.position = position;
  return step;
}

void SliceWalk::add_code_input(const LoggedCode& code, SliceWay way) {
  if (!coded_.insert(code.physical.value).second) return;
  SliceInput input;
  input.kind = SliceInput::Kind::code;
  input.way = way;
  input.address = code.physical;
  input.size = code.info.length;
  slice_.inputs.push_back(std::move(input));
}

void SliceWalk::add_port_input(const Execution& e, SliceWay way) {
  SliceInput input;
  input.way = way;
  input.position = e.position;
  if (e.ports.empty()) {
    input.kind = SliceInput::Kind::clock;
    slice_.inputs.push_back(std::move(input));
    return;
  }
  for (const LoggedPortRead& port : e.ports) {
    input.kind = SliceInput::Kind::port;
    input.address = PhysAddr{port.port};
    input.size = port.size;
    input.value = port.value;
    if (port.number < recording_.io_reads.size()) {
      input.transaction = recording_.io_reads[port.number].transaction;
    }
    slice_.inputs.push_back(input);
  }
}

}  // namespace citcat
