#include "replay/machine/units/long_mode_transfer.h"

#include <array>

#include "events/machine/control_bits.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/system_memory.h"

namespace citcat {

namespace {

// Attributes of the segments that system calls and returns load (SDM vol. 2, SYSCALL, SYSRET).
constexpr std::uint16_t kCode64 = 0xa09b, kCode32 = 0xc09b, kData64 = 0xc093, kLevel3 = 0x60;

constexpr std::uint32_t kMsrCompatibilityTarget = 0xc0000083;  ///< CSTAR

Segment flat(std::uint32_t selector, std::uint16_t attributes) {
  return {static_cast<std::uint16_t>(selector), 0, 0xffffffff, attributes, false};
}

bool is_64_bit(const Segment& code) { return (code.attributes & kDescLong >> 8) != 0; }

}  // namespace

void LongModeTransfer::transfer() {
  const DecodedInstruction& info = *flight_.info;
  const bool steps = (cpu_.engine.system_flags() & kFlagTf) != 0;
  const auto bases = cpu_.bases();
  flight_.store_count = 0;
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] = kt_address(info, i, cpu_.offset_in_code(cpu_.linear, cpu_.code.base),
                               cpu_.engine.gprs(), bases.data(), cpu_.stack32());
  }
  switch (info.kind) {
    case InstructionClass::iret:
      return_from_interrupt();
      break;
    case InstructionClass::far_return:
      return_far();
      break;
    default:
      jump_or_call();
  }
  finish(steps);
}

void LongModeTransfer::finish(bool steps) {
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.code.forget();
  retirement_.report_completed();
  retirement_.retire();
  if (steps) debug_.add_pending(DebugUnit::kStep);
  if (debug_.pending() != 0) delivery_.take_debug_trap();
}

/// Looks at an operand in memory, reports the read, and reads it.
std::uint64_t LongModeTransfer::read_operand(const MemoryOperand& operand, std::uint32_t size) {
  DataAccess a;
  a.offset = cpu_.offset_of(operand);
  a.linear = cpu_.linear_of(operand);
  a.size = static_cast<std::uint16_t>(size);
  operands_.access(a, operand);
  return operands_.read_wide_value(a.linear, size);
}

std::uint64_t LongModeTransfer::stacked(std::uint64_t above, std::uint32_t size) {
  MemoryOperand operand;
  operand.segment = kSs;
  operand.base = kEsp;
  operand.displacement = static_cast<std::int64_t>(above);
  operand.width = cpu_.bits64() ? AddressWidth::bits64 : AddressWidth::stack;
  operand.read = true;
  return read_operand(operand, size);
}

LongModeTransfer::Target LongModeTransfer::find_target(const Descriptor& code,
                                                       std::uint16_t selector,
                                                       std::uint64_t ip) const {
  const std::uint32_t error = code.selector & 0xfffcu;
  if ((code.high & (kDescLong | kDescWide)) == (kDescLong | kDescWide)) {
    throw CpuException{kProtection, error, 0};
  }
  Target target{code.segment(selector), ip};
  if (is_64_bit(target.code)) {
    if (!CpuContext::is_canonical(ip)) throw CpuException{kProtection, 0u, 0};
    return target;
  }
  target.ip = static_cast<std::uint32_t>(ip);
  if (target.ip > target.code.limit) throw CpuException{kProtection, 0u, 0};
  return target;
}

void LongModeTransfer::go_to(const Target& target) {
  cpu_.engine.set_segment(kCs, target.code);
  cpu_.engine.set_rip(target.ip);
}

void LongModeTransfer::jump_or_call() {
  const DecodedInstruction& info = *flight_.info;
  const bool call = info.kind == InstructionClass::far_call;
  const std::uint32_t width = info.operand_bytes, cpl = cpu_.cpl();
  std::uint16_t selector = info.far_selector;
  std::uint64_t offset = info.far_offset;
  if (info.indirect) {
    offset = read_operand(info.operands[0], width);
    selector = static_cast<std::uint16_t>(read_operand(info.operands[1], 2));
  }
  const std::uint32_t error = selector & 0xfffcu;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
  if (code.is(SystemType::call_gate32)) return through_gate(code, selector & 3u);
  const bool allowed =
      code.conforming() ? code.dpl() <= cpl : code.dpl() == cpl && (selector & 3u) <= cpl;
  if (!code.is_code() || !allowed) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const Target target = find_target(code, static_cast<std::uint16_t>(error | cpl), offset);
  if (call) {
    push_return(width);
  }
  segments_.mark_accessed(code);
  go_to(target);
}

/// CS and what follows the instruction go on the stack, `width` bytes each.
void LongModeTransfer::push_return(std::uint32_t width) {
  const std::uint64_t next = retirement_.next_ip();
  const bool wide = cpu_.bits64(), user = cpu_.user_mode();
  const std::uint64_t rsp = cpu_.engine.wide().gpr(kEsp);
  const auto place = [&](std::uint64_t below) {
    const std::uint64_t at = rsp - below;
    if (!wide)
      return linear32(cpu_.engine.segment_base(kSs),
                      static_cast<std::uint32_t>(at) & cpu_.stack_bits());
    if (!CpuContext::is_canonical(at)) throw CpuException{kStackFault, 0u, 0};
    return LinearAddr{at};
  };
  for (const std::uint32_t below : {width, 2 * width}) {
    cpu_.mmu.translate(place(below), Access::write, program(user));
  }
  system_.push(place(width), cpu_.engine.segment_selector(kCs), width, user);
  system_.push(place(2 * width), next, width, user);
  cpu_.move_stack_pointer(-2 * static_cast<std::int64_t>(width));
}

/// A call gate of 16 bytes, to 64-bit code (SDM vol. 3, 5.8.3.1; vol. 2, CALL and JMP). `rpl` is
/// that of the selector that names it.
void LongModeTransfer::through_gate(const Descriptor& gate, std::uint32_t rpl) {
  const bool call = flight_.info->kind == InstructionClass::far_call;
  const std::uint32_t cpl = cpu_.cpl(), gate_error = gate.selector & 0xfffcu;
  const std::uint64_t offset = gate.gate_offset() | segments_.read_upper_half(gate) << 32;
  if (gate.dpl() < cpl || gate.dpl() < rpl) throw CpuException{kProtection, gate_error, 0};
  if (!gate.present()) throw CpuException{kNotPresent, gate_error, 0};
  const std::uint16_t selector = gate.gate_selector();
  const std::uint32_t error = selector & 0xfffcu;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
  const bool inner = call && !code.conforming() && code.dpl() < cpl;
  const bool wide = (code.high & (kDescLong | kDescWide)) == kDescLong;
  const bool reachable = inner || (code.conforming() ? code.dpl() <= cpl : code.dpl() == cpl);
  if (!code.is_code() || !reachable || !wide) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const std::uint32_t level = inner ? code.dpl() : cpl;
  const auto target_selector = static_cast<std::uint16_t>(error | level);
  if (inner) {
    push_on_inner_stack(level, offset);
  } else {
    if (!CpuContext::is_canonical(offset)) throw CpuException{kProtection, 0u, 0};
    constexpr std::uint32_t kWidth = 8;
    if (call) push_return(kWidth);
  }
  segments_.mark_accessed(code);
  go_to({code.segment(target_selector), offset});
}

/// Goes over to the stack that the task segment has for an inner level, with what leads back.
void LongModeTransfer::push_on_inner_stack(std::uint32_t level, std::uint64_t target) {
  constexpr std::uint32_t kStacks = 4, kWidth = 8, kPushes = 4;
  Engine& engine = cpu_.engine;
  const std::uint32_t at = kStacks + kWidth * level;
  const Segment task = engine.tr();
  if (at + kWidth - 1 > task.limit) throw CpuException{kInvalidTss, task.selector & 0xfffcu, 0};
  const std::uint64_t top = system_.read_wide(LinearAddr{engine.wide().tr_base() + at}, kWidth);
  for (std::uint64_t i = 1; i <= kPushes; ++i) {
    if (!CpuContext::is_canonical(top - kWidth * i)) throw CpuException{kStackFault, 0u, 0};
  }
  if (!CpuContext::is_canonical(target)) throw CpuException{kProtection, 0u, 0};
  const std::uint64_t rsp = cpu_.bits64() ? engine.wide().gpr(kEsp) : engine.gpr(kEsp);
  const std::array<std::uint64_t, kPushes> pushed = {
      engine.segment_selector(kSs), rsp, engine.segment_selector(kCs), retirement_.next_ip()};
  // Where a page is not there nothing of it is stored.
  for (const std::uint64_t first : {top - kWidth * kPushes, top - 1}) {
    cpu_.mmu.translate(LinearAddr{first}, Access::write, Who::supervisor);
  }
  std::uint64_t below = top;
  for (const std::uint64_t value : pushed)
    system_.push(LinearAddr{below -= kWidth}, value, kWidth, false);
  engine.set_segment(kSs, {static_cast<std::uint16_t>(level), 0, 0, 0, true});
  engine.wide().set_gpr(kEsp, below);
}

/// The code segment that RETF or IRET leads to.
Descriptor LongModeTransfer::returned_code(std::uint16_t selector) {
  const std::uint32_t error = selector & 0xfffcu, level = selector & 3u;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
  if (!code.is_code_of(level) || level < cpu_.cpl()) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  return code;
}

LongModeTransfer::OuterStack LongModeTransfer::outer_stack(std::uint16_t selector,
                                                           std::uint64_t rsp,
                                                           const Target& target) {
  const std::uint32_t error = selector & 0xfffcu, level = target.code.selector & 3u;
  const bool wide = is_64_bit(target.code);
  if (error == 0) {
    // Levels 0 to 2 of 64-bit mode take a null selector (SDM vol. 2, IRET).
    if (!wide || level == 3 || (selector & 3u) != level) throw CpuException{kProtection, 0u, 0};
    return {{selector, 0, 0, 0, true}, rsp};
  }
  const Descriptor stack = segments_.read_descriptor(selector, kProtection, 0);
  if ((selector & 3u) != level || !stack.is_writable_data() || stack.dpl() != level) {
    throw CpuException{kProtection, error, 0};
  }
  if (!stack.present()) throw CpuException{kStackFault, error, 0};
  segments_.mark_accessed(stack);
  return {stack.segment(selector), rsp};
}

/// `wide`: to 64-bit mode.
void LongModeTransfer::take_outer_stack(const OuterStack& stack, std::uint64_t released,
                                        bool wide) {
  Engine& engine = cpu_.engine;
  engine.set_segment(kSs, stack.segment);
  const std::uint64_t rsp = stack.rsp + released;
  if (wide) {
    engine.wide().set_gpr(kEsp, rsp);
    return;
  }
  const std::uint32_t mask = stack_mask(stack.segment);
  engine.set_gpr(kEsp, (engine.gpr(kEsp) & ~mask) | (static_cast<std::uint32_t>(rsp) & mask));
}

void LongModeTransfer::return_far() {
  const DecodedInstruction& info = *flight_.info;
  const std::uint32_t width = info.operand_bytes, cpl = cpu_.cpl();
  const std::uint64_t ip = stacked(0, width);
  const auto selector = static_cast<std::uint16_t>(stacked(width, width));
  const Descriptor code = returned_code(selector);
  const Target target = find_target(code, selector, ip);
  const std::uint32_t level = selector & 3u;
  const std::uint64_t behind = 2 * std::uint64_t{width} + info.immediate;
  if (level == cpl) {
    cpu_.move_stack_pointer(static_cast<std::int64_t>(behind));
  } else {
    const std::uint64_t rsp = stacked(behind, width);
    const auto ss = static_cast<std::uint16_t>(stacked(behind + width, width));
    const OuterStack stack = outer_stack(ss, rsp, target);
    take_outer_stack(stack, info.immediate, is_64_bit(target.code));
    for (const int s : {kEs, kFs, kGs, kDs}) segments_.drop_inner(s, level);
  }
  segments_.mark_accessed(code);
  go_to(target);
}

/// SDM vol. 2, IRET, in long mode: in 64-bit mode SS and RSP are popped whatever the level.
void LongModeTransfer::return_from_interrupt() {
  if ((cpu_.engine.system_flags() & kFlagNt) != 0) throw CpuException{kProtection, 0u, 0};
  const std::uint32_t width = flight_.info->operand_bytes, cpl = cpu_.cpl();
  const std::uint64_t ip = stacked(0, width);
  const auto selector = static_cast<std::uint16_t>(stacked(width, width));
  const std::uint64_t flags = stacked(2 * width, width);
  const bool from_64 = cpu_.bits64();
  const bool pops_stack = from_64 || (selector & 3u) != cpl;
  const std::uint64_t rsp = pops_stack ? stacked(3 * width, width) : 0;
  const std::uint64_t ss = pops_stack ? stacked(4 * width, width) : 0;
  const Descriptor code = returned_code(selector);
  const Target target = find_target(code, selector, ip);
  if (pops_stack) {
    const OuterStack stack = outer_stack(static_cast<std::uint16_t>(ss), rsp, target);
    take_outer_stack(stack, 0, is_64_bit(target.code));
  } else {
    cpu_.move_stack_pointer(3 * std::int64_t{width});
  }
  segments_.mark_accessed(code);
  load_flags(flags, width, cpl);
  go_to(target);
  const std::uint32_t level = selector & 3u;
  if (level != cpl) {
    for (const int s : {kEs, kFs, kGs, kDs}) segments_.drop_inner(s, level);
  }
}

void LongModeTransfer::load_flags(std::uint64_t image, std::uint32_t width, std::uint32_t cpl) {
  constexpr std::uint32_t kArithmetic = 0xcd5, kId = 1u << 21, kIopl = 3u << 12,
                          kVirtualInterrupts = 3u << 19, kDf = 1u << 10;
  const std::uint32_t before = cpu_.engine.eflags();
  std::uint32_t loaded = kArithmetic | kDf | kFlagTf | kFlagNt | kFlagRf | kFlagAc | kId;
  if (cpl <= (before >> 12 & 3)) loaded |= kFlagIf;
  if (cpl == 0) loaded |= kIopl | kVirtualInterrupts;
  if (width == 2) loaded &= 0xffff;
  cpu_.engine.set_eflags((before & ~loaded) | (static_cast<std::uint32_t>(image) & loaded));
}

void LongModeTransfer::syscall() {
  Engine& engine = cpu_.engine;
  if ((engine.efer() & kEferSce) == 0) throw CpuException{6, std::nullopt, 0};
  const std::uint32_t flags = engine.eflags() & ~kFlagRf;
  const std::uint64_t star = model_registers_.value_of(kMsrStar);
  // From compatibility mode AMD's processors go elsewhere (APM vol. 2, 6.1.1).
  const std::uint32_t target = cpu_.bits64() ? kMsrLongTarget : kMsrCompatibilityTarget;
  retirement_.report_completed();
  engine.wide().set_gpr(kEcx, retirement_.next_ip());
  engine.wide().set_gpr(11, flags);
  const auto selector = static_cast<std::uint32_t>(star >> 32) & 0xfffc;
  engine.set_segment(kCs, flat(selector, kCode64));
  engine.set_segment(kSs, flat(selector + 8, kData64));
  const auto cleared = static_cast<std::uint32_t>(model_registers_.value_of(kMsrSyscallMask));
  engine.set_eflags((flags & ~cleared) | 2);
  engine.set_rip(model_registers_.value_of(target));
  retirement_.finish_mode_switch(flags & ~cleared);
}

void LongModeTransfer::sysret() {
  Engine& engine = cpu_.engine;
  if ((engine.efer() & kEferSce) == 0) throw CpuException{6, std::nullopt, 0};
  if (cpu_.cpl() != 0) throw CpuException{kProtection, 0u, 0};
  const bool wide = flight_.info->operand_bytes == 8;
  const std::uint64_t target = engine.wide().gpr(kEcx);
  // AMD's refuse it at the target, with its level.
  if (wide && !CpuContext::is_canonical(target) && !model_registers_.is_of_amd()) {
    throw CpuException{kProtection, 0u, 0};
  }
  const auto base = static_cast<std::uint32_t>(model_registers_.value_of(kMsrStar) >> 48);
  retirement_.report_completed();
  constexpr std::uint32_t kLoaded = 0x3c7fd7;  // neither RF nor VM
  engine.set_eflags((static_cast<std::uint32_t>(engine.wide().gpr(11)) & kLoaded) | 2);
  engine.set_segment(kCs, flat((wide ? base + 16 : base) | 3,
                               static_cast<std::uint16_t>((wide ? kCode64 : kCode32) | kLevel3)));
  Segment stack = flat((base + 8) | 3, kData64 | kLevel3);
  if (model_registers_.is_of_amd() && !model_registers_.is_emulated()) {
    // AMD's load the selector alone (APM vol. 3, SYSRET). A null one's segment cannot be used.
    const Segment before = engine.segment(kSs);
    stack = before;
    stack.selector = static_cast<std::uint16_t>((base + 8) | 3);
    stack.attributes = before.attributes | kLevel3;  // by which the engine knows the level
  }
  engine.set_segment(kSs, stack);
  engine.set_rip(wide ? target : static_cast<std::uint32_t>(target));
  // It traps by the flags that it has loaded, as if SYSCALL had ended just now. IRET traps by those
  // before it (Linux, arch/x86/entry/entry_64.S, at "SYSRET can restore TF"; QEMU 10,
  // target/i386/tcg, gen_SYSRET()).
  retirement_.finish_mode_switch(engine.system_flags());
}

void LongModeTransfer::sysenter() {
  Engine& engine = cpu_.engine;
  if (model_registers_.is_of_amd()) throw CpuException{6, std::nullopt, 0};
  const auto cs = static_cast<std::uint32_t>(model_registers_.value_of(kMsrSysenterCs)) & 0xfffc;
  if (cs == 0) throw CpuException{kProtection, 0u, 0};
  const std::uint32_t flags = engine.eflags();
  retirement_.report_completed();
  engine.set_eflags(flags & ~(kFlagVm | kFlagIf | kFlagRf));
  engine.set_segment(kCs, flat(cs, kCode64));
  engine.set_segment(kSs, flat(cs + 8, kData64));
  engine.wide().set_gpr(kEsp, model_registers_.value_of(kMsrSysenterEsp));
  engine.set_rip(model_registers_.value_of(kMsrSysenterEip));
  retirement_.finish_mode_switch(flags);
}

void LongModeTransfer::sysexit() {
  Engine& engine = cpu_.engine;
  if (model_registers_.is_of_amd()) throw CpuException{6, std::nullopt, 0};
  const auto cs = static_cast<std::uint32_t>(model_registers_.value_of(kMsrSysenterCs)) & 0xfffc;
  if (cs == 0 || cpu_.cpl() != 0) throw CpuException{kProtection, 0u, 0};
  const bool wide = (flight_.info->rex & kRexW) != 0;
  const std::uint64_t rsp = engine.wide().gpr(kEcx), ip = engine.wide().gpr(kEdx);
  if (wide && !(CpuContext::is_canonical(rsp) && CpuContext::is_canonical(ip))) {
    throw CpuException{kProtection, 0u, 0};
  }
  const std::uint32_t selector = cs + (wide ? 32 : 16);
  retirement_.report_completed();
  engine.set_segment(
      kCs, flat(selector | 3, static_cast<std::uint16_t>((wide ? kCode64 : kCode32) | kLevel3)));
  engine.set_segment(kSs, flat((selector + 8) | 3, kData64 | kLevel3));
  engine.wide().set_gpr(kEsp, wide ? rsp : static_cast<std::uint32_t>(rsp));
  engine.set_rip(wide ? ip : static_cast<std::uint32_t>(ip));
  retirement_.finish_mode_switch(engine.system_flags());
}

}  // namespace citcat
