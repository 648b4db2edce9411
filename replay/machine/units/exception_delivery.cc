#include "replay/machine/units/exception_delivery.h"

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "replay/machine/missing_memory.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/long_mode_delivery.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/stack_pusher.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/table_descriptor.h"
#include "replay/machine/units/task_switch.h"

namespace citcat {

namespace {

bool contributory(std::uint8_t vector) {
  return vector == 0 || (vector >= kInvalidTss && vector <= kProtection);
}

/// SDM vol. 3, table 6-5: what becomes of a second fault while the first is being delivered.
CpuException combine(const CpuException& first, const CpuException& second) {
  const bool to_double = (contributory(first.vector) && contributory(second.vector)) ||
                         (first.vector == kPageFaultVector &&
                          (contributory(second.vector) || second.vector == kPageFaultVector));
  if (to_double) return {kDoubleFault, 0u, 0};
  return second;
}

}  // namespace

bool ExceptionDelivery::raise(CpuException exception, std::uint64_t return_ip,
                              DeliveredEvent::Kind kind) {
  if (exception.vector == kPageFaultVector) cpu_.engine.wide().set_cr(2, exception.cr2);
  if (exception.vector == kDebug && kind == DeliveredEvent::Kind::exception) {
    debug_.clear_general_detect();
  }
  DeliveredEvent event;
  event.kind = kind;
  event.vector = exception.vector;
  event.error_code = exception.error_code.value_or(0);
  event.cs = cpu_.engine.segment_selector(kCs);
  event.eip = cpu_.ip();
  event.cr2 = cpu_.engine.wide().cr(2);
  event.eflags = cpu_.flags();
  cpu_.audience.delivered(event, cpu_.position);
  bool as_requested = true;
  debug_.set_pending(0);
  for (;;) {
    CpuException second;
    tasks_.begin_delivery();
    try {
      deliver(exception, return_ip, kind);
      break;
    } catch (const PageFault& f) {
      second = {kPageFaultVector, f.error_code, f.address.value};
      cpu_.engine.wide().set_cr(2, f.address.value);
    } catch (const CpuException& e) {
      second = e;
    }
    as_requested = false;
    if (exception.vector == kDoubleFault && kind == DeliveredEvent::Kind::exception) {
      cpu_.shut_down = true;  // SDM vol. 3, 6.15, interrupt 8: a third fault ends in shutdown
      cpu_.audience.shutdown(cpu_.position);
      break;
    }
    // Interrupts and INT n are benign whatever their vector (SDM vol. 3, table 6-4).
    const bool benign = kind != DeliveredEvent::Kind::exception;
    exception = benign ? second : combine(exception, second);
    // A fault while a software interrupt is delivered restarts the INT n itself; one in a task that
    // was entered belongs to the new task.
    if (kind == DeliveredEvent::Kind::software || tasks_.entered()) return_ip = cpu_.ip();
    kind = DeliveredEvent::Kind::exception;
    event.kind = kind;
    event.vector = exception.vector;
    event.error_code = exception.error_code.value_or(0);
    event.eip = cpu_.ip();
    event.cr2 = cpu_.engine.wide().cr(2);
    cpu_.audience.delivered(event, cpu_.position);
  }
  flight_.discard();
  cpu_.position.iteration = 0;
  if (expectation_.compares) expectation_.update();
  cpu_.resume_flag = false;
  cpu_.code.forget();
  return as_requested;
}

void ExceptionDelivery::deliver(const CpuException& exception, std::uint64_t return_ip,
                                DeliveredEvent::Kind kind) {
  const auto return_eip = static_cast<std::uint32_t>(return_ip);
  if (cpu_.long_mode()) {
    long_mode_.deliver({exception, return_ip, pushed_flags(kind, exception.vector),
                        kind == DeliveredEvent::Kind::software});
  } else if ((cpu_.engine.cr(0) & 1) == 0) {
    deliver_real(exception.vector, return_eip);
  } else {
    deliver_protected(exception, return_eip, kind);
  }
  cpu_.engine.clear_inhibit();
}

/// A word at offset FFFFh is beyond the segment, so that with SP = 1, 3 or 5 nothing can be
/// delivered, a stack fault and a double fault neither: the processor shuts down (80286
/// Programmer's Reference, PUSH, PUSHA and INT, real address mode exceptions; the same in the
/// 80386's; SDM vol. 2, PUSH).
void ExceptionDelivery::require_room_in_real_mode() const {
  constexpr std::uint32_t kWords = 3, kSegmentEnd = 0xffff;
  if (!cpu_.traits.has_limits || cpu_.engine.segment(kSs).limit > kSegmentEnd) return;
  const std::uint32_t sp = cpu_.engine.gpr(kEsp) & 0xffff;
  if ((sp & 1) != 0 && sp < 2 * kWords) throw CpuException{kStackFault, std::nullopt, 0};
}

void ExceptionDelivery::deliver_real(std::uint8_t vector, std::uint32_t return_eip) {
  const TableRegister idt = cpu_.engine.idtr();
  if (vector * 4u + 3 > idt.limit) throw CpuException{kProtection, std::nullopt, 0};
  require_room_in_real_mode();
  const std::uint32_t target = system_.read(linear32(idt.base, vector * 4u), 4);
  const std::uint32_t ss = cpu_.engine.segment_base(kSs);
  std::uint32_t sp = cpu_.engine.gpr(kEsp) & 0xffff;
  const std::uint32_t flags = cpu_.engine.eflags();
  const auto store = [&](std::uint32_t value) {
    sp = (sp - 2) & 0xffff;
    if (sp == 0xffff && cpu_.traits.wraps_words) {  // offsets wrap between the bytes
      system_.write(linear32(ss, sp), value & 0xff, 1);
      system_.write(LinearAddr{ss}, value >> 8 & 0xff, 1);
      return;
    }
    system_.write(linear32(ss, sp), value & 0xffff, 2);
  };
  store(flags);
  store(cpu_.engine.segment_selector(kCs));
  store(return_eip);
  cpu_.engine.set_gpr(kEsp, (cpu_.engine.gpr(kEsp) & 0xffff0000) | sp);
  cpu_.engine.set_eflags(flags & ~(kFlagIf | kFlagTf | kFlagRf | kFlagAc));
  Segment cs = cpu_.engine.segment(kCs);
  cs.selector = static_cast<std::uint16_t>(target >> 16);
  cs.base = (target >> 16) << 4;
  cpu_.engine.set_segment(kCs, cs);
  cpu_.engine.set_eip(target & 0xffff);
  cpu_.engine.sync_mode();
}

/// The gate of an interrupt, from level `cpl` (SDM vol. 3, figure 6-2).
Descriptor ExceptionDelivery::read_gate(std::uint8_t vector, bool software, std::uint32_t cpl) {
  const std::uint32_t error = vector * 8u + 2 + (software ? 0 : 1);
  const TableRegister idt = cpu_.engine.idtr();
  if (vector * 8u + 7 > idt.limit) throw CpuException{kProtection, error, 0};
  Descriptor gate;
  gate.linear = linear32(idt.base, vector * 8u);
  gate.low = system_.read(gate.linear, 4);
  gate.high = system_.read(gate.linear.plus32(4), 4);
  const bool handler = gate.is(SystemType::interrupt_gate16) || gate.is(SystemType::trap_gate16) ||
                       gate.is(SystemType::interrupt_gate32) || gate.is(SystemType::trap_gate32);
  if (!handler && !gate.is(SystemType::task_gate)) throw CpuException{kProtection, error, 0};
  if (software && gate.dpl() < cpl) throw CpuException{kProtection, error, 0};
  if (!gate.present()) throw CpuException{kNotPresent, error, 0};
  return gate;
}

/// The code segment of its handler.
Descriptor ExceptionDelivery::read_handler(std::uint16_t selector, std::uint32_t cpl, bool from_v86,
                                           std::uint32_t ext) {
  if ((selector & 0xfffc) == 0) throw CpuException{kProtection, ext, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, ext);
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if (!code.is_code() || code.dpl() > cpl) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  if (from_v86 && (code.conforming() || code.dpl() != 0)) {
    throw CpuException{kProtection, error, 0};
  }
  return code;
}

void ExceptionDelivery::deliver_protected(const CpuException& exception, std::uint32_t return_eip,
                                          DeliveredEvent::Kind kind) {
  const std::uint8_t vector = exception.vector;
  const bool software = kind == DeliveredEvent::Kind::software;
  const std::uint32_t ext = software ? 0 : 1;
  const std::uint32_t old_flags = cpu_.engine.eflags();
  const bool from_v86 = (old_flags & kFlagVm) != 0;
  const std::uint32_t cpl = from_v86 ? 3 : cpu_.cpl();
  const Descriptor gate = read_gate(vector, software, cpl);
  const std::uint16_t selector = gate.gate_selector();
  if (gate.is(SystemType::task_gate)) {
    tasks_.deliver(selector, exception, {return_eip, pushed_flags(kind, vector)}, ext);
    return;
  }
  const Descriptor code = read_handler(selector, cpl, from_v86, ext);
  const bool inner = !code.conforming() && code.dpl() < cpl;
  const bool wide = (gate.type() & 8) != 0;
  const std::uint32_t width = wide ? 4 : 2;
  const std::uint32_t flags_to_push = pushed_flags(kind, vector);

  const std::uint32_t offset = wide ? gate.gate_offset() : gate.gate_offset() & 0xffff;
  const std::uint32_t new_cpl = inner ? code.dpl() : cpl;
  const Segment new_code = code.segment(static_cast<std::uint16_t>((selector & ~3u) | new_cpl));
  if (offset > new_code.limit) throw CpuException{kProtection, ext, 0};

  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), false, false};
  std::optional<Descriptor> stack_descriptor;
  if (inner) top = stack_.inner_stack(code.dpl(), ext, stack_descriptor);
  const auto store = [&](std::uint32_t value) { stack_.push(top, value, width, ext); };
  if (from_v86) {
    for (const int s : {kGs, kFs, kDs, kEs}) store(cpu_.engine.segment_selector(s));
  }
  if (inner) {
    store(cpu_.engine.segment_selector(kSs));
    store(cpu_.engine.gpr(kEsp));
  }
  store(flags_to_push);
  store(cpu_.engine.segment_selector(kCs));
  store(return_eip);
  if (exception.error_code && !software) store(*exception.error_code);

  // From here on nothing can fault: take the handler's context over.
  if (from_v86) {
    for (const int s : {kGs, kFs, kDs, kEs}) cpu_.engine.set_segment(s, {0, 0, 0, 0, true});
  }
  if (stack_descriptor) {
    segments_.mark_accessed(*stack_descriptor);
    cpu_.engine.set_segment(kSs, top.segment);
  }
  segments_.mark_accessed(code);
  cpu_.engine.set_segment(kCs, new_code);
  cpu_.engine.set_gpr(kEsp, top.esp);
  std::uint32_t flags = old_flags & ~(kFlagTf | kFlagNt | kFlagRf | kFlagVm);
  if ((gate.type() & 1) == 0) flags &= ~kFlagIf;
  cpu_.engine.set_eflags(flags);
  cpu_.engine.set_eip(offset);
  cpu_.engine.sync_mode();
}

std::uint32_t ExceptionDelivery::pushed_flags(DeliveredEvent::Kind kind,
                                              std::uint8_t vector) const {
  // SDM vol. 3, 17.3.1.1: faults push RF set, so that the restarted instruction does not hit its
  // breakpoint again; an interrupt between iterations of a REP does the same. RF also survives
  // until one instruction has completed after an IRET that loaded it.
  std::uint32_t pushed = cpu_.flags();
  const bool fault = kind == DeliveredEvent::Kind::exception && vector != 1 && vector != 3 &&
                     vector != 4 && vector != kDoubleFault;
  if (fault || (kind != DeliveredEvent::Kind::software && cpu_.position.iteration != 0)) {
    pushed |= kFlagRf;
  }
  return pushed;
}

void ExceptionDelivery::interrupt(std::uint8_t vector, DeliveredEvent::Kind kind) {
  cpu_.halted = false;
  // SDM vol. 3, 6.15, interrupt 8.
  if (kind == DeliveredEvent::Kind::nmi) cpu_.shut_down = false;
  flight_.active = false;
  std::uint64_t return_ip = cpu_.ip();
  if (cpu_.traits.keeps_one_prefix && cpu_.position.iteration != 0 &&
      flight_.info->prefix_bytes > 1) {
    // Only the last prefix is kept (8086 Family User's Manual, 2.7, "String instructions").
    return_ip = (return_ip + flight_.info->prefix_bytes - 1) & 0xffff;
  }
  try {
    raise({vector, std::nullopt, 0}, return_ip, kind);
  } catch (const UndefinedMemory& u) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "interrupt %02x needs memory that no evidence defines (%s, %u bytes at physical "
                  "%08" PRIx64 ")",
                  vector, u.what, u.size, u.address.value);
    throw MissingMemory{{cpu_.position, text}, u.address, u.size};
  }
}

void ExceptionDelivery::take_debug_trap() {
  debug_.take_pending();
  cpu_.halted = false;
  raise({kDebug, std::nullopt, 0}, cpu_.ip(), DeliveredEvent::Kind::exception);
}

}  // namespace citcat
