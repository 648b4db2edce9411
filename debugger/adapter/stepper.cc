#include "debugger/adapter/stepper.h"

#include <algorithm>

#include "events/machine/cpu_place.h"

namespace citcat::dap {
namespace {

/// Addresses this near to one another are of one stack.
constexpr std::uint64_t kOneStack = std::uint64_t{1} << 16;
/// Moves within one line before it is given up: a loop may take longer.
constexpr unsigned kMostSteps = 1'000'000;
constexpr unsigned kShortestCall = 2, kLongestCall = 15;

bool is_call(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::call:
    case InstructionClass::far_call:
    case InstructionClass::int_n:
    case InstructionClass::int3:
    case InstructionClass::into:
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return true;
    default:
      return false;
  }
}

bool is_return(InstructionClass kind) {
  return kind == InstructionClass::ret || kind == InstructionClass::far_return;
}

bool goes_elsewhere(const DecodedInstruction& info) {
  switch (info.kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
    case InstructionClass::jump:
    case InstructionClass::far_jump:
    case InstructionClass::ret:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::sysexit:
    case InstructionClass::sysret:
    case InstructionClass::rsm:
    case InstructionClass::loadall:
      return true;
    default:
      return is_call(info.kind);
  }
}

bool is_of_stack(LinearAddr pointer, LinearAddr stack) {
  return pointer.value - stack.value < kOneStack;
}

bool has_moved(const MoveEnd& end) { return end.why == MoveEnd::Why::moved; }

}  // namespace

MoveEnd Stepper::run_to(std::vector<LinearAddr> addresses, const StackPlace& stack,
                        const std::optional<ReturnSlot>& slot) {
  // Breakpoints of the client's are of the other kind.
  const auto insert = [&](bool in) {
    for (const LinearAddr a : addresses) {
      in ? target_.insert(StopKind::software_breakpoint, a, 1)
         : target_.remove(StopKind::software_breakpoint, a, 1);
    }
  };
  insert(true);
  if (slot) target_.insert(StopKind::write_watchpoint, slot->at, slot->bytes);
  MoveEnd end;
  for (;;) {
    end = target_.go_on(interrupt_);
    const bool stores = slot && end.why == MoveEnd::Why::watchpoint && end.watched == slot->at;
    if (stores) {
      insert(false);
      const bool returned = has_returned(*slot, addresses, stack);
      insert(true);
      if (!returned) continue;
      end.why = MoveEnd::Why::moved;
    }
    if (end.why != MoveEnd::Why::breakpoint) break;
    const bool there =
        std::find(addresses.begin(), addresses.end(), debuggee_.pc()) != addresses.end();
    if (there && has_come_back(debuggee_.stack_place(), stack)) {
      if (end.kind == StopKind::software_breakpoint) end.why = MoveEnd::Why::moved;
      break;
    }
    if (!there || end.kind != StopKind::software_breakpoint) break;
  }
  insert(false);
  if (slot) target_.remove(StopKind::write_watchpoint, slot->at, slot->bytes);
  return end;
}

/// If the stack pointer was above the slot before the store, this was a push, so the procedure has
/// left its frame. The frame of an interrupt is an exception: it says nothing about the procedure.
bool Stepper::has_returned(const ReturnSlot& slot, std::vector<LinearAddr>& addresses,
                           const StackPlace& stack) {
  ReplayTimeline& timeline = target_.timeline();
  const Moment behind = timeline.moment();
  const auto offset = number_at(target_.machine(), slot.at, slot.bytes);
  const std::size_t mark = timeline.mark();
  timeline.step_back();
  const StackPlace before = debuggee_.stack_place();
  const bool delivers = timeline.moment().deliveries != behind.deliveries;
  timeline.return_to(mark);
  timeline.forget(mark);
  if (delivers || !offset) return false;
  if (slot.at < before.top && has_come_back(before, {before.space, slot.at})) return true;
  addresses = {target_.address(slot.base.value + *offset)};
  return debuggee_.pc() == addresses.front() && has_come_back(debuggee_.stack_place(), stack);
}

/// One instruction, all iterations of a REP; an interrupt that comes is gone through.
MoveEnd Stepper::into_instruction() {
  const LinearAddr from = debuggee_.pc();
  const StackPlace stack = debuggee_.stack_place();
  const DecodedInstruction info = debuggee_.instruction_at(from);
  const MoveEnd end = target_.step_in_range(from, 1, interrupt_);
  if (!has_moved(end) || info.length == 0 || goes_elsewhere(info)) return end;
  const LinearAddr next = target_.address(from.value + info.length);
  const bool delivered = debuggee_.pc() != next && debuggee_.pc() != from;
  return delivered ? run_to({next, from}, stack) : end;
}

/// Where the call at `from`, which has just been made, has stored its return address: an offset in
/// the same code segment as `from`.
std::optional<ReturnSlot> Stepper::slot_of_call(const DecodedInstruction& call, LinearAddr from) {
  if (call.kind != InstructionClass::call) return std::nullopt;
  const LinearAddr top = debuggee_.stack();
  const unsigned bytes = call.bits64 ? 8 : call.operand_bytes;
  const auto offset = number_at(target_.machine(), top, bytes);
  const std::uint64_t mask = bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
  const CpuState cpu = target_.machine().save();
  const std::uint64_t base = is_in_64_bit_mode(cpu) ? 0 : cpu.segment[kCs].base;
  const std::uint64_t behind = from.value + call.length - base;
  if (!offset || *offset != (behind & mask)) return std::nullopt;
  return ReturnSlot{top, bytes, LinearAddr{base}};
}

MoveEnd Stepper::over_instruction() {
  const LinearAddr from = debuggee_.pc();
  const StackPlace stack = debuggee_.stack_place();
  const DecodedInstruction info = debuggee_.instruction_at(from);
  if (info.length == 0 || !is_call(info.kind)) return into_instruction();
  const MoveEnd end = target_.step();
  const LinearAddr next = target_.address(from.value + info.length);
  if (!has_moved(end) || debuggee_.pc() == next) return end;
  return run_to({next}, stack, slot_of_call(info, from));
}

/// Moves until another line begins, or what had lines is left.
template <class Move>
MoveEnd Stepper::by_lines(Move&& move) {
  const std::optional<SourcePlace> from = place();
  const LinearAddr stack = debuggee_.stack();
  for (unsigned steps = 0;; ++steps) {
    const MoveEnd end = move();
    if (!has_moved(end) || !from || steps >= kMostSteps) return end;
    const std::optional<SourcePlace> here = place();
    if (!here) {
      // Into something without lines: on to where it returns.
      const bool called = debuggee_.stack() < stack;
      if (!called) return end;
      continue;
    }
    const bool other = here->line != from->line || here->file != from->file;
    const bool returned = stack < debuggee_.stack();
    if (other && (here->begin == debuggee_.pc() || returned)) return end;
    if (interrupt_ && (steps & 0x3ff) == 0x3ff && interrupt_()) {
      return {.why = MoveEnd::Why::interrupted};
    }
  }
}

MoveEnd Stepper::over(Unit unit) {
  if (unit == Unit::instruction) return over_instruction();
  return by_lines([&] { return over_instruction(); });
}

MoveEnd Stepper::into(Unit unit) {
  if (unit == Unit::instruction) return target_.step();
  return by_lines([&]() -> MoveEnd {
    const LinearAddr from = debuggee_.pc();
    const StackPlace stack = debuggee_.stack_place();
    const DecodedInstruction info = debuggee_.instruction_at(from);
    const MoveEnd end = into_instruction();
    // A procedure without source lines is run to its end.
    const bool called = info.length != 0 && is_call(info.kind);
    if (!has_moved(end) || !called || place()) return end;
    return run_to({target_.address(from.value + info.length)}, stack, slot_of_call(info, from));
  });
}

MoveEnd Stepper::out() {
  const std::vector<StackLevel>& levels = debuggee_.stack_levels(interrupt_);
  const StackLevel& level = levels.front();
  if (level.returns && level.slot) {
    const LinearAddr above{level.slot->at.value + 1};
    return run_to({*level.returns}, {level.space, above}, level.slot);
  }
  if (level.is_interrupt && levels.size() > 1) {
    const LinearAddr from = levels[1].at;
    const DecodedInstruction info = debuggee_.instruction_at(from);
    std::vector<LinearAddr> behind{from};
    if (info.length != 0) behind.push_back(target_.address(from.value + info.length));
    return run_to(behind, level.interrupted);
  }
  return target_.go_on(interrupt_);
}

/// Goes back to the call that has returned to `behind`, with the stack pointer at `stack`.
MoveEnd Stepper::back_to_call(LinearAddr behind, LinearAddr stack) {
  std::vector<LinearAddr> calls;
  for (unsigned length = kShortestCall; length <= kLongestCall; ++length) {
    const LinearAddr at = target_.address(behind.value - length);
    const DecodedInstruction info = debuggee_.instruction_at(at);
    if (info.length == length && is_call(info.kind)) calls.push_back(at);
  }
  if (calls.empty()) return {};
  for (const LinearAddr a : calls) target_.insert(StopKind::software_breakpoint, a, 1);
  MoveEnd end;
  for (;;) {
    end = target_.go_back(interrupt_);
    if (end.why != MoveEnd::Why::breakpoint || end.kind != StopKind::software_breakpoint) break;
    // Parameters that RET took away lie below.
    if (!is_of_stack(stack, debuggee_.stack())) continue;
    end.why = MoveEnd::Why::moved;
    break;
  }
  for (const LinearAddr a : calls) target_.remove(StopKind::software_breakpoint, a, 1);
  return end;
}

MoveEnd Stepper::back_over_instruction() {
  const LinearAddr behind = debuggee_.pc(), stack = debuggee_.stack();
  const MoveEnd end = target_.step_back();
  if (!has_moved(end)) return end;
  const DecodedInstruction info = debuggee_.instruction_at(debuggee_.pc());
  const bool returned = info.length != 0 && is_return(info.kind);
  return returned ? back_to_call(behind, stack) : end;
}

MoveEnd Stepper::back(Unit unit) {
  if (unit == Unit::instruction || !place()) return target_.step_back();
  // To the end of another line, and on to its beginning.
  const std::optional<SourcePlace> from = place();
  const bool began = from->begin == debuggee_.pc();
  std::optional<SourcePlace> line = began ? std::nullopt : from;
  for (unsigned steps = 0; steps < kMostSteps; ++steps) {
    const MoveEnd end = back_over_instruction();
    if (!has_moved(end)) return end;
    const std::optional<SourcePlace> here = place();
    if (!here) return end;
    if (!line) line = here;
    if (here->line != line->line || here->file != line->file) {
      return over_instruction();  // one too far
    }
    if (here->begin == debuggee_.pc()) return end;
    if (interrupt_ && (steps & 0x3ff) == 0x3ff && interrupt_()) {
      return {.why = MoveEnd::Why::interrupted};
    }
  }
  return {};
}

}  // namespace citcat::dap
