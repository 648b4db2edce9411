#include "replay/slice/slice_walk.h"

#include <algorithm>
#include <utility>

#include "events/address.h"

namespace citcat {
namespace {

using Of = ValueSpan::Of;

SliceWay farther(SliceWay a, SliceWay b) { return std::max(a, b); }

bool is_in_stack_pointer(unsigned place) {
  return place >= place::kGprs + 8 * kEsp && place < place::kGprs + 8 * kEsp + 8;
}

/// What it pops or pushes besides its operands is told as the system's.
bool has_system_operands(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::rsm:
    case InstructionClass::loadall:
      return true;
    default:
      return false;
  }
}

}  // namespace

SliceMemory SliceWalk::Stream::at(std::uint32_t i) const {
  for (const SliceMemory& piece : pieces) {
    if (i < piece.size) {
      return {piece.physical.plus32(i),
              piece.linear == LinearAddr{} ? LinearAddr{} : LinearAddr{piece.linear.value + i}, 1};
    }
    i -= piece.size;
  }
  return {};
}

void SliceWalk::Demand::clear() {
  places.clear();
  memory.clear();
  input = false;
  input_way = SliceWay::control;
}

void SliceWalk::Met::clear() {
  places.clear();
  memory.clear();
  nearest = SliceWay::control;
}

void SliceWalk::want(PlaceRange range, SliceWay way) {
  for (unsigned i = 0; i < range.count; ++i) {
    const unsigned number = range.first + i;
    if (way != SliceWay::value && !query_.stack_pointer && is_in_stack_pointer(number)) {
      ++slice_.stack_pointer_given;
      continue;
    }
    live_.want_place(number, way);
  }
}

bool SliceWalk::done() const {
  const bool decided =
      std::find(wants_branch_.begin(), wants_branch_.end(), true) == wants_branch_.end();
  return live_.empty() && decided;
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
        delivery(log, entry);
        break;
      case LogEntry::Kind::external:
        external(log, entry);
        break;
      case LogEntry::Kind::unfinished:
        unfinished(log, entry);
        break;
    }
    if (done()) return true;
    if (query_.limit != 0 && slice_.steps.size() >= query_.limit) {
      slice_.complete = false;
      slice_.reached = entry.first;
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
  if (!by_registers && !by_memory && !by_control && !by_numbers && !query_.control) return;
  std::size_t end = accesses.size();
  for (std::size_t i = piece.code.size(); i-- != 0;) {
    std::size_t begin = end;
    while (begin != 0 && accesses[begin - 1].instruction == i) --begin;
    Execution e;
    e.code = &piece.code[i];
    e.flow = &piece.flow(i);
    e.position = {entry.first.instruction + i, i == 0 ? entry.first.iteration : 0};
    e.ports = log.ports(entry);
    const auto mine = accesses.subspan(begin, end - begin);
    follow_calls(e.code->info.kind);
    if (touches_live(*e.flow, mine, 0)) {
      fill_streams(e, mine, 0);
      execution(e);
    } else if (e.flow->stack_moves != 0 || e.flow->uses_stack || e.flow->uses_mmx) {
      settle(e);
    }
    if (wants_branch() && e.flow->branch) {
      fill_streams(e, mine, 0);
      decision(e);
    }
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
    if (!touches_live(*e.flow, accesses, by)) continue;
    e.position = {entry.first.instruction, entry.first.iteration + i};
    e.ports = ports.size() == entry.count ? ports.subspan(i, 1) : ports;
    fill_streams(e, accesses, by);
    execution(e);
    if (query_.limit != 0 && slice_.steps.size() >= query_.limit) return;
  }
}

void SliceWalk::fill_streams(const Execution& e, std::span<const LoggedAccess> accesses,
                             std::uint32_t by) {
  loads_.clear();
  stores_.clear();
  const bool system = has_system_operands(e.code->info.kind);
  for (const LoggedAccess& a : accesses) {
    if (a.kind != AccessKind::data && !system) continue;
    const LinearAddr linear =
        a.linear == LinearAddr{} ? LinearAddr{} : LinearAddr{a.linear.value + by};
    (a.write ? stores_ : loads_).add({a.physical.plus32(by), linear, a.size});
  }
  put_in_order(e.code->info);
}

/// Processors differ in the order in which they read and store the parts of these: a flow has them
/// from the lowest address up, and what is pushed from the first one down.
void SliceWalk::put_in_order(const DecodedInstruction& info) {
  const bool pushes = info.is(Operation::pusha);
  const bool loads_parts = info.is(Operation::popa) || info.kind == InstructionClass::iret ||
                           info.kind == InstructionClass::far_return ||
                           info.kind == InstructionClass::load_far_pointer;
  const auto is_lower = [](const SliceMemory& a, const SliceMemory& b) {
    return a.linear < b.linear;
  };
  std::vector<SliceMemory>& stored = stores_.pieces;
  if (pushes && !stored.empty() && is_lower(stored.front(), stored.back())) {
    std::reverse(stored.begin(), stored.end());
  }
  if (loads_parts) std::stable_sort(loads_.pieces.begin(), loads_.pieces.end(), is_lower);
}

std::uint32_t SliceWalk::length(const ValueSpan& span) const {
  const std::uint32_t there = span.of == Of::loads    ? loads_.size
                              : span.of == Of::stores ? stores_.size
                                                      : ~0u;
  if (span.first >= there) return 0;
  return std::min<std::uint32_t>(span.count == ValueSpan::kAll ? there : span.count,
                                 there - span.first);
}

void SliceWalk::demand_byte(const ValueSpan& span, std::uint32_t i, SliceWay way) {
  if (span.of == Of::places) {
    demand_.places.emplace_back(static_cast<std::uint16_t>(span.first + i), way);
  } else if (span.of == Of::loads) {
    demand_.memory.emplace_back(loads_.at(span.first + i), way);
    touched_memory_ = true;
  }
}

void SliceWalk::demand_span(const ValueSpan& span, SliceWay way) {
  if (span.of == Of::input) {
    demand_.input_way = demand_.input ? std::min(demand_.input_way, way) : way;
    demand_.input = true;
    touched_memory_ = true;
    return;
  }
  const std::uint32_t count = length(span);
  for (std::uint32_t i = 0; i < count; ++i) demand_byte(span, i, way);
}

/// Looks which bytes of what it writes matter, and wants what they are made of.
void SliceWalk::effect(const ValueEffect& effect) {
  if (effect.only_where_loaded && length(effect.whole.front()) == 0) return;
  hits_.clear();
  SliceWay nearest = SliceWay::control;
  std::uint32_t base = 0;
  for (const ValueSpan& span : effect.to) {
    const std::uint32_t count = length(span);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint8_t way = 0;
      if (span.of == Of::places) {
        way = live_.place(span.first + i);
        if (way != 0) met_.places.push_back(static_cast<std::uint16_t>(span.first + i));
      } else {
        const SliceMemory byte = stores_.at(span.first + i);
        way = live_.memory(byte.physical);
        if (way != 0) {
          met_.memory.push_back(byte);
          touched_memory_ = true;
        }
      }
      if (way == 0) continue;
      hits_.emplace_back(base + i, static_cast<SliceWay>(way));
      nearest = std::min(nearest, static_cast<SliceWay>(way));
    }
    base += count;
  }
  if (hits_.empty()) return;
  met_.nearest = std::min(met_.nearest, nearest);
  for (const ValueSpan& span : effect.whole) demand_span(span, nearest);
  lanes(effect);
}

void SliceWalk::lanes(const ValueEffect& effect) {
  for (const ValueSpan& span : effect.lanes) {
    const std::uint32_t count = length(span);
    for (const auto& [byte, way] : hits_) {
      if (byte < count) demand_byte(span, byte, way);
    }
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
  for (const std::uint16_t p : met_.places) live_.forget_place(p);
  for (const SliceMemory& m : met_.memory) live_.forget_memory(m.physical);
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
  step.approximate = e.flow->approximate;
  for (const std::uint16_t p : met_.places) step.writes.set(p);
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
  for (const auto& [place, way] : demand_.places) {
    step.reads.set(place);
    want({place, 1}, way);
  }
  for (const auto& [byte, way] : demand_.memory) {
    step.loads.push_back(byte);
    live_.want_memory(byte.physical, way);
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

// ---------------------------------------------------------------------------------------------
// Branches

/// Going back, a return leads into what was called, and a call out of it.
void SliceWalk::follow_calls(InstructionClass kind) {
  if (!query_.control) return;
  switch (kind) {
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::sysexit:
    case InstructionClass::sysret:
      return enter_callee();
    case InstructionClass::call:
    case InstructionClass::far_call:
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return leave_to_caller();
    default:
      return;
  }
}

/// Who called decided about all that the called one did.
void SliceWalk::leave_to_caller() {
  const bool wanted = wants_branch_.back();
  wants_branch_.pop_back();
  if (wants_branch_.empty()) wants_branch_.push_back(false);
  if (wanted) wants_branch_.back() = true;
}

/// Whether the steps behind it ran was decided here.
void SliceWalk::decision(const Execution& e) {
  const bool known = !slice_.steps.empty() && slice_.steps.back().position == e.position &&
                     slice_.steps.back().linear == e.code->linear;
  demand_.clear();
  for (const PlaceRange& range : e.flow->decides) {
    demand_span({Of::places, range.first, range.count}, SliceWay::control);
  }
  // A target in memory; of returns the place is where the call came from.
  const InstructionClass kind = e.code->info.kind;
  const bool returns = kind == InstructionClass::ret || kind == InstructionClass::far_return ||
                       kind == InstructionClass::iret;
  if (!returns) demand_span({Of::loads, 0, ValueSpan::kAll}, SliceWay::control);
  if (demand_.places.empty() && demand_.memory.empty()) return;
  SliceStep& step = known ? slice_.steps.back() : add_step(SliceWay::control, e.position);
  if (!known) {
    step.linear = e.code->linear;
    step.physical = e.code->physical;
    step.code.assign(e.code->info.bytes.begin(), e.code->info.bytes.begin() + e.code->info.length);
    step.bits = code_segment_bits(e.code->info);
    add_code_input(*e.code, SliceWay::control);
  }
  apply_demand(step);
}

// ---------------------------------------------------------------------------------------------
// What comes from outside

void SliceWalk::external(const SliceLog& log, const LogEntry& entry) {
  const LoggedAccess& written = log.accesses(entry).front();
  SliceInput input;
  input.kind = SliceInput::Kind::dma;
  input.way = SliceWay::control;
  input.position = entry.first;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < entry.count; ++i) {
    const PhysAddr a = written.physical.plus32(i);
    const std::uint8_t way = live_.memory(a);
    if (way == 0) continue;
    if (end == 0) input.address = a;
    end = i + 1;
    input.way = std::min(input.way, static_cast<SliceWay>(way));
    live_.forget_memory(a);
  }
  if (end == 0) return;
  input.size = written.physical.plus32(end).minus32(input.address);
  if (entry.number < recording_.external_writes.size()) {
    input.transaction = recording_.external_writes[entry.number].transaction;
  }
  slice_.inputs.push_back(std::move(input));
}

void SliceWalk::unfinished(const SliceLog& log, const LogEntry& entry) {
  for (const LoggedAccess& a : log.accesses(entry)) {
    for (std::uint32_t i = 0; i < a.size; ++i) {
      const PhysAddr byte = a.physical.plus32(i);
      const std::uint8_t way = live_.memory(byte);
      if (way == 0) continue;
      live_.forget_memory(byte);
      SliceInput input;
      input.kind = SliceInput::Kind::unfinished;
      input.way = static_cast<SliceWay>(way);
      input.address = byte;
      input.position = entry.first;
      slice_.inputs.push_back(std::move(input));
    }
  }
}

namespace {

/// Slots of an interrupt's frame, from the highest address down (SDM vol. 3, 6.12).
enum class FrameSlot : std::uint8_t { gs, fs, ds, es, ss, sp, flags, cs, ip, error };

std::vector<FrameSlot> frame_of(std::size_t count) {
  constexpr std::array<FrameSlot, 10> kAll{
      FrameSlot::gs, FrameSlot::fs,    FrameSlot::ds, FrameSlot::es, FrameSlot::ss,
      FrameSlot::sp, FrameSlot::flags, FrameSlot::cs, FrameSlot::ip, FrameSlot::error};
  switch (count) {
    case 3:
    case 5:
    case 9:
      return {kAll.end() - 1 - static_cast<std::ptrdiff_t>(count), kAll.end() - 1};
    case 4:
    case 6:
    case 10:
      return {kAll.end() - static_cast<std::ptrdiff_t>(count), kAll.end()};
    default:
      return {};
  }
}

/// The frame among what a delivery stored, the highest address first: stores that lie one below
/// the other. What else it stores are bits of descriptors.
std::vector<LoggedAccess> frame_among(std::span<const LoggedAccess> accesses) {
  std::vector<LoggedAccess> best, run;
  for (const LoggedAccess& a : accesses) {
    if (!a.write || a.size > 8) continue;
    const bool goes_on =
        !run.empty() && run.back().size == a.size &&
        ((run.back().physical.low32() - a.size) & kPageMask) == a.physical.offset_in_page();
    if (!goes_on) run.clear();
    run.push_back(a);
    if (run.size() > best.size()) best = run;
  }
  return best;
}

}  // namespace

void SliceWalk::delivery(const SliceLog& log, const LogEntry& entry) {
  const DeliveredEvent& event = log.event(entry).event;
  const std::span<const LoggedAccess> accesses = log.accesses(entry);
  if (query_.control) leave_to_caller();
  met_.clear();
  demand_.clear();
  std::vector<LoggedAccess> frame = frame_among(accesses);
  std::vector<FrameSlot> slots = frame_of(frame.size());
  bool by_event = false;
  SliceWay event_way = SliceWay::control;
  const auto meet_memory = [&](PhysAddr a, SliceWay& way) {
    const std::uint8_t w = live_.memory(a);
    if (w == 0) return false;
    way = static_cast<SliceWay>(w);
    met_.memory.push_back({a, {}, 1});
    met_.nearest = std::min(met_.nearest, way);
    return true;
  };
  const auto says = [&](SliceWay way) {
    by_event = true;
    event_way = std::min(event_way, way);
  };
  const auto want_all_registers = [&](SliceWay way) {
    demand_span({Of::places, 0, place::kVectors}, way);
    demand_span({Of::places, place::kFlags, place::kFpuStatus - place::kFlags}, way);
  };
  SliceWay way = SliceWay::value;
  if (slots.empty()) {
    // A task, or system management mode: which byte is of which register is not told apart.
    for (const LoggedAccess& a : accesses) {
      for (std::uint32_t i = 0; a.write && i < a.size; ++i) {
        if (meet_memory(a.physical.plus32(i), way)) want_all_registers(way);
      }
    }
  }
  for (std::size_t s = 0; s < slots.size(); ++s) {
    for (std::uint32_t i = 0; i < frame[s].size; ++i) {
      if (!meet_memory(frame[s].physical.plus32(i), way)) continue;
      const auto segment = [&](unsigned number) {
        if (i < 2) demand_.places.emplace_back(place::segment(number).first, way);
      };
      switch (slots[s]) {
        case FrameSlot::gs:
          segment(kGs);
          break;
        case FrameSlot::fs:
          segment(kFs);
          break;
        case FrameSlot::ds:
          segment(kDs);
          break;
        case FrameSlot::es:
          segment(kEs);
          break;
        case FrameSlot::ss:
          segment(kSs);
          break;
        case FrameSlot::cs:
          segment(kCs);
          break;
        case FrameSlot::sp:
          demand_.places.emplace_back(place::gpr(kEsp, i, 1).first, way);
          break;
        case FrameSlot::flags:
          for (unsigned bit = 8 * i; bit < std::min(32u, 8 * i + 8); ++bit) {
            demand_.places.emplace_back(place::flag(bit).first, way);
          }
          break;
        case FrameSlot::ip:
        case FrameSlot::error:
          says(way);
          break;
      }
    }
  }
  // Registers that it changes.
  const auto meet_place = [&](unsigned number) -> bool {
    const std::uint8_t w = live_.place(number);
    if (w == 0) return false;
    way = static_cast<SliceWay>(w);
    met_.places.push_back(static_cast<std::uint16_t>(number));
    met_.nearest = std::min(met_.nearest, way);
    return true;
  };
  loads_.clear();
  for (const LoggedAccess& a : accesses) {
    if (!a.write && a.kind == AccessKind::system) loads_.add({a.physical, {}, a.size});
  }
  const bool task = slots.empty() && !frame.empty();
  for (const unsigned bit : {8u, 9u, 14u, 16u, 17u}) {
    if (!meet_place(place::kFlags + bit)) continue;
    if (task) demand_span({Of::loads, 0, ValueSpan::kAll}, way);
  }
  const bool other_stack = slots.size() >= 5;
  for (unsigned i = 0; i < 8; ++i) {
    if (!meet_place(place::kGprs + 8 * kEsp + i)) continue;
    if (other_stack) demand_span({Of::loads, 0, ValueSpan::kAll}, way);
    if (slots.size() < 9) demand_.places.emplace_back(place::gpr(kEsp, i, 1).first, way);
  }
  for (const unsigned number : {kCs, kSs}) {
    if (number == kSs && !other_stack) continue;
    if (meet_place(place::kSegments + number)) demand_span({Of::loads, 0, ValueSpan::kAll}, way);
  }
  if (slots.size() >= 9) {
    for (const unsigned number : {kEs, kDs, kFs, kGs}) meet_place(place::kSegments + number);
  }
  constexpr std::uint8_t kPageFault = 14;
  const bool fault = event.kind == DeliveredEvent::Kind::exception && event.vector == kPageFault;
  if (fault && meet_place(place::kControl + 1)) says(way);
  if (task) {
    for (unsigned number = 0; number < place::kVectors; ++number) {
      if (meet_place(number)) demand_span({Of::loads, 0, ValueSpan::kAll}, way);
    }
  }
  for (const std::uint16_t p : met_.places) live_.forget_place(p);
  for (const SliceMemory& m : met_.memory) live_.forget_memory(m.physical);
  const bool outside = event.kind == DeliveredEvent::Kind::external ||
                       event.kind == DeliveredEvent::Kind::nmi ||
                       event.kind == DeliveredEvent::Kind::smi;
  const bool controls = query_.control && outside && wants_branch_.back();
  if (!met_.any() && !controls) return;
  if (met_.any()) {
    SliceStep& step = add_step(met_.nearest, entry.first);
    step.kind = SliceStep::Kind::delivery;
    step.event = event;
    step.linear = log.event(entry).linear;
    for (const std::uint16_t p : met_.places) step.writes.set(p);
    step.stores = met_.memory;
    merge(step.stores);
    apply_demand(step);
  }
  if (!by_event && !controls && !(outside && met_.any())) return;
  if (!outside && !by_event) return;
  SliceInput input;
  input.kind = outside ? SliceInput::Kind::interrupt : SliceInput::Kind::exception;
  input.way = met_.any() ? met_.nearest : SliceWay::control;
  input.address = PhysAddr{event.vector};
  input.size = 0;
  input.position = entry.first;
  const auto& interrupts = recording_.interrupts;
  for (auto i = std::lower_bound(interrupts.begin(), interrupts.end(), entry.first,
                                 [](const Interrupt&a, Position p) { return a.position < p; });
       outside && i != interrupts.end() && i->position == entry.first; ++i) {
    input.transaction = i->transaction;
    if (i->vector == event.vector) break;
  }
  slice_.inputs.push_back(std::move(input));
  if (query_.control && met_.any()) wants_branch_.back() = true;
}

}  // namespace citcat
