// Delivery of exceptions and interrupts: Intel SDM vol. 3, chapter 6. The engine stops where one
// arises; everything from the gate to the first instruction of the handler happens here, access by
// access, because those accesses are on the bus and are checked like any other.

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "replay/machine/machine_descriptor.h"

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

// ---------------------------------------------------------------------------------------------
// Memory as the processor itself uses it: always with supervisor rights

std::uint32_t Machine::system_read(std::uint32_t linear, std::uint32_t size) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < size;) {
    const std::uint32_t n = std::min(size - i, kPageSize - ((linear + i) & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear + i}, Access::read, false);
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, n)) {
      throw UndefinedMemory{at, n, "descriptor table, task segment or interrupt vector"};
    }
    std::memcpy(reinterpret_cast<std::uint8_t*>(&value) + i, cpu_.memory.host(at), n);
    if (cpu_.wants_reads) cpu_.sink->read(at, n, AccessKind::system, cpu_.position);
    i += n;
  }
  return value;
}

void Machine::system_write(std::uint32_t linear, std::uint32_t value, std::uint32_t size,
                           bool user) {
  std::array<std::uint8_t, 4> bytes;
  std::memcpy(bytes.data(), &value, 4);
  for (std::uint32_t i = 0; i < size;) {
    const std::uint32_t n = std::min(size - i, kPageSize - ((linear + i) & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear + i}, Access::write, user);
    cpu_.memory.store(at, std::span(bytes).subspan(i, n));
    if (cpu_.sink != nullptr) {
      cpu_.sink->write(at, std::span(bytes).subspan(i, n), AccessKind::system, cpu_.position);
    }
    i += n;
  }
}

Machine::Descriptor Machine::read_descriptor(std::uint16_t selector, std::uint8_t fault,
                                             std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  std::uint32_t base = 0, limit = 0;
  if ((selector & 4) != 0) {
    const Segment ldt = cpu_.engine.ldtr();
    base = ldt.base;
    limit = ldt.unusable ? 0 : ldt.limit;
  } else {
    const TableRegister gdt = cpu_.engine.gdtr();
    base = gdt.base;
    limit = gdt.limit;
  }
  if ((selector & 0xfff8u) + 7 > limit) throw CpuException{fault, error, 0};
  Descriptor d;
  d.selector = selector;
  d.linear = base + (selector & 0xfff8u);
  d.low = system_read(d.linear, 4);
  d.high = system_read(d.linear + 4, 4);
  return d;
}

void Machine::mark_accessed(const Descriptor& d) {
  // One byte is written: seen on the bus of a recorded machine for far jumps and segment loads.
  if ((d.high & kDescAccessed) != 0) return;
  system_write(d.linear + 5, (d.high | kDescAccessed) >> 8 & 0xff, 1);
}

/// Where the descriptor's type byte lies, when `selector` names one within its table.
std::optional<std::uint32_t> Machine::descriptor_type_byte(std::uint16_t selector) const {
  if ((selector & 0xfffc) == 0) return std::nullopt;
  const bool local = (selector & 4) != 0;
  const Segment ldt = cpu_.engine.ldtr();
  const std::uint32_t base = local ? ldt.base : cpu_.engine.gdtr().base;
  const std::uint32_t limit = local ? (ldt.unusable ? 0 : ldt.limit) : cpu_.engine.gdtr().limit;
  if ((selector & 0xfff8u) + 7 > limit) return std::nullopt;
  return base + (selector & 0xfff8u) + 5;
}

/// The selector that the instruction is about to load or look up.
std::uint16_t Machine::operand_selector() {
  const DecodedInstruction& info = *flight_.info;
  if (info.register_form) return static_cast<std::uint16_t>(cpu_.engine.gpr(info.rm_field));
  // Of a far pointer's two operands that is the offset.
  const unsigned number = info.ea[0].argument;
  const bool pointer = info.kind == InstructionClass::load_far_pointer;
  MemoryOperand operand = info.operands[pointer ? 1 - number : number];
  operand.size = 2;
  return static_cast<std::uint16_t>(operand_part(operand, 0));
}

void Machine::watch_descriptor() {
  // The engine sets accessed and busy bits itself: remember the byte to see whether it did.
  watched_ = {};
  if (!cpu_.protected_mode()) return;
  const std::uint16_t selector = operand_selector();
  const auto linear = descriptor_type_byte(selector);
  if (!linear) return;
  tell_descriptor(selector);
  if (flight_.info->kind == InstructionClass::lldt) return;
  watched_.physical = cpu_.mmu.translate(LinearAddr{*linear}, Access::read, false);
  const std::uint8_t* host = cpu_.memory.host(watched_.physical);
  watched_.active = true;
  watched_.before = *host;
  const std::uint8_t to_set =
      flight_.info->kind == InstructionClass::ltr ? 2 : 1;  // busy, accessed
  if ((watched_.before & to_set) == 0)
    cpu_.mmu.translate(LinearAddr{*linear}, Access::write, false);
}

void Machine::report_watched_descriptor() {
  if (!watched_.active) return;
  watched_.active = false;
  const std::uint8_t now = *cpu_.memory.host(watched_.physical);
  if (now == watched_.before) return;
  cpu_.memory.mark_defined(watched_.physical, 1);
  if (cpu_.sink != nullptr) {
    cpu_.sink->write(watched_.physical, {&now, 1}, AccessKind::system, cpu_.position);
  }
}

void Machine::mark_transfer_accessed() {
  // The engine loads CS, and SS on a return to an outer level, without setting the descriptors'
  // accessed bits.
  const bool outer = (cpu_.engine.hflags() & kHfCpl) != (flight_.hflags_before & kHfCpl);
  for (const int s : {kCs, kSs}) {
    if (s == kSs && !outer) continue;
    const auto linear = descriptor_type_byte(cpu_.engine.segment_selector(s));
    if (!linear) continue;
    constexpr std::uint8_t kAccessedBit = 1;
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{*linear}, Access::read, false);
    const std::uint8_t type = *cpu_.memory.host(at);  // has been read before the transfer
    if ((type & kAccessedBit) == 0) system_write(*linear, std::uint32_t{type} | kAccessedBit, 1);
  }
}

// ---------------------------------------------------------------------------------------------

std::uint32_t Machine::pushed_flags(DeliveredEvent::Kind kind, std::uint8_t vector) const {
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

bool Machine::raise(CpuException exception, std::uint32_t return_eip, DeliveredEvent::Kind kind) {
  if (exception.vector == kPageFaultVector) cpu_.engine.set_cr(2, exception.cr2);
  if (exception.vector == kDebug && kind == DeliveredEvent::Kind::exception) {
    clear_general_detect();
  }
  DeliveredEvent event;
  event.kind = kind;
  event.vector = exception.vector;
  event.error_code = exception.error_code.value_or(0);
  event.cs = cpu_.engine.segment_selector(kCs);
  event.eip = cpu_.engine.eip();
  event.cr2 = cpu_.engine.cr(2);
  event.eflags = cpu_.flags();
  if (cpu_.sink != nullptr) cpu_.sink->delivered(event, cpu_.position);
  bool as_requested = true;
  debug_pending_ = 0;
  for (;;) {
    CpuException second;
    task_entered_ = false;
    try {
      deliver(exception, return_eip, kind);
      break;
    } catch (const PageFault& f) {
      second = {kPageFaultVector, f.error_code, f.address};
      cpu_.engine.set_cr(2, f.address);
    } catch (const CpuException& e) {
      second = e;
    }
    as_requested = false;
    if (exception.vector == kDoubleFault && kind == DeliveredEvent::Kind::exception) {
      cpu_.shut_down = true;  // SDM vol. 3, 6.15, interrupt 8: a third fault ends in shutdown
      if (cpu_.sink != nullptr) cpu_.sink->shutdown(cpu_.position);
      break;
    }
    // Interrupts and INT n are benign whatever their vector (SDM vol. 3, table 6-4).
    const bool benign = kind != DeliveredEvent::Kind::exception;
    exception = benign ? second : combine(exception, second);
    // A fault while a software interrupt is delivered restarts the INT n itself; one in a task that
    // was entered belongs to the new task.
    if (kind == DeliveredEvent::Kind::software || task_entered_) return_eip = cpu_.engine.eip();
    kind = DeliveredEvent::Kind::exception;
    event.kind = kind;
    event.vector = exception.vector;
    event.error_code = exception.error_code.value_or(0);
    event.eip = cpu_.engine.eip();
    event.cr2 = cpu_.engine.cr(2);
    if (cpu_.sink != nullptr) cpu_.sink->delivered(event, cpu_.position);
  }
  flight_.discard();
  cpu_.position.iteration = 0;
  if (expectation_.compares) expectation_.update();
  cpu_.resume_flag = false;
  cpu_.code.forget();
  return as_requested;
}

void Machine::deliver(const CpuException& exception, std::uint32_t return_eip,
                      DeliveredEvent::Kind kind) {
  if ((cpu_.engine.cr(0) & 1) == 0) {
    deliver_real(exception.vector, return_eip);
  } else {
    deliver_protected(exception, return_eip, kind);
  }
  cpu_.engine.clear_inhibit();
}

void Machine::deliver_real(std::uint8_t vector, std::uint32_t return_eip) {
  const TableRegister idt = cpu_.engine.idtr();
  if (vector * 4u + 3 > idt.limit) throw CpuException{kProtection, std::nullopt, 0};
  const std::uint32_t target = system_read(idt.base + vector * 4u, 4);
  const std::uint32_t ss = cpu_.engine.segment_base(kSs);
  std::uint32_t sp = cpu_.engine.gpr(kEsp) & 0xffff;
  const std::uint32_t flags = cpu_.engine.eflags();
  const auto push = [&](std::uint32_t value) {
    sp = (sp - 2) & 0xffff;
    if (sp == 0xffff && cpu_.traits.wraps_words) {  // offsets wrap between the bytes
      system_write(ss + sp, value & 0xff, 1);
      system_write(ss, value >> 8 & 0xff, 1);
      return;
    }
    system_write(ss + sp, value & 0xffff, 2);
  };
  push(flags);
  push(cpu_.engine.segment_selector(kCs));
  push(return_eip);
  cpu_.engine.set_gpr(kEsp, (cpu_.engine.gpr(kEsp) & 0xffff0000) | sp);
  cpu_.engine.set_eflags(flags & ~(kFlagIf | kFlagTf | kFlagRf | kFlagAc));
  Segment cs = cpu_.engine.segment(kCs);
  cs.selector = static_cast<std::uint16_t>(target >> 16);
  cs.base = (target >> 16) << 4;
  cpu_.engine.set_segment(kCs, cs);
  cpu_.engine.set_eip(target & 0xffff);
  cpu_.engine.sync_mode();
}

void Machine::deliver_protected(const CpuException& exception, std::uint32_t return_eip,
                                DeliveredEvent::Kind kind) {
  const std::uint8_t vector = exception.vector;
  const bool software = kind == DeliveredEvent::Kind::software;
  const std::uint32_t ext = software ? 0 : 1;
  const std::uint32_t idt_error = vector * 8u + 2 + ext;
  const TableRegister idt = cpu_.engine.idtr();
  if (vector * 8u + 7 > idt.limit) throw CpuException{kProtection, idt_error, 0};
  const std::uint32_t gate_low = system_read(idt.base + vector * 8u, 4);
  const std::uint32_t gate_high = system_read(idt.base + vector * 8u + 4, 4);
  const std::uint32_t type = gate_high >> 8 & 0x1f;
  // SDM vol. 3, figure 6-2.
  const bool task_gate = type == static_cast<std::uint32_t>(SystemType::task_gate);
  if (!task_gate && type != 6 && type != 7 && type != 14 && type != 15) {
    throw CpuException{kProtection, idt_error, 0};
  }
  const std::uint32_t old_flags = cpu_.engine.eflags();
  const bool from_v86 = (old_flags & kFlagVm) != 0;
  const std::uint32_t cpl = from_v86 ? 3 : cpu_.engine.hflags() & 3;
  if (software && (gate_high >> 13 & 3) < cpl) throw CpuException{kProtection, idt_error, 0};
  if ((gate_high & kDescPresent) == 0) throw CpuException{kNotPresent, idt_error, 0};
  const auto selector = static_cast<std::uint16_t>(gate_low >> 16);
  if (task_gate) {
    deliver_through_task(selector, exception, {return_eip, pushed_flags(kind, vector)}, ext);
    return;
  }
  if ((selector & 0xfffc) == 0) throw CpuException{kProtection, ext, 0};
  const Descriptor code = read_descriptor(selector, kProtection, ext);
  const std::uint32_t selector_error = (selector & 0xfffcu) | ext;
  if (!code.is_code() || code.dpl() > cpl) throw CpuException{kProtection, selector_error, 0};
  if (!code.present()) throw CpuException{kNotPresent, selector_error, 0};
  const bool inner = !code.conforming() && code.dpl() < cpl;
  if (from_v86 && (!inner || code.dpl() != 0)) throw CpuException{kProtection, selector_error, 0};
  const bool wide = (type & 8) != 0;
  const std::uint32_t width = wide ? 4 : 2;
  const std::uint32_t flags_to_push = pushed_flags(kind, vector);

  const std::uint32_t offset = (gate_low & 0xffff) | (wide ? gate_high & 0xffff0000 : 0);
  const std::uint32_t new_cpl = inner ? code.dpl() : cpl;
  const Segment new_code = code.segment(static_cast<std::uint16_t>((selector & ~3u) | new_cpl));
  if (offset > new_code.limit) throw CpuException{kProtection, ext, 0};

  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), false, false};
  std::optional<Descriptor> stack_descriptor;
  if (inner) top = inner_stack(code.dpl(), ext, stack_descriptor);
  const auto push = [&](std::uint32_t value) { this->push(top, value, width, ext); };
  if (from_v86) {
    for (const int s : {kGs, kFs, kDs, kEs}) push(cpu_.engine.segment_selector(s));
  }
  if (inner) {
    push(cpu_.engine.segment_selector(kSs));
    push(cpu_.engine.gpr(kEsp));
  }
  push(flags_to_push);
  push(cpu_.engine.segment_selector(kCs));
  push(return_eip);
  if (exception.error_code && !software) push(*exception.error_code);

  // From here on nothing can fault: take the handler's context over.
  if (from_v86) {
    for (const int s : {kGs, kFs, kDs, kEs}) cpu_.engine.set_segment(s, {0, 0, 0, 0, true});
  }
  if (stack_descriptor) {
    mark_accessed(*stack_descriptor);
    cpu_.engine.set_segment(kSs, top.segment);
  }
  mark_accessed(code);
  cpu_.engine.set_segment(kCs, new_code);
  cpu_.engine.set_gpr(kEsp, top.esp);
  std::uint32_t flags = old_flags & ~(kFlagTf | kFlagNt | kFlagRf | kFlagVm);
  if ((type & 1) == 0) flags &= ~kFlagIf;
  cpu_.engine.set_eflags(flags);
  cpu_.engine.set_eip(offset);
  cpu_.engine.sync_mode();
}

/// The stack of a more privileged level (SDM vol. 3, 6.12.1): the task segment names it.
Machine::StackTop Machine::inner_stack(std::uint32_t level, std::uint32_t ext,
                                       std::optional<Descriptor>& descriptor) {
  const Segment tr = cpu_.engine.tr();
  const bool wide = (tr.attributes & 8) != 0;
  const std::uint32_t at = wide ? 4 + 8 * level : 2 + 4 * level;
  if (at + (wide ? 7 : 3) > tr.limit) {
    throw CpuException{kInvalidTss, (tr.selector & 0xfffcu) | ext, 0};
  }
  StackTop top;
  top.inner = true;
  top.user = level == 3;
  top.esp = system_read(tr.base + at, wide ? 4 : 2);
  const auto ss = static_cast<std::uint16_t>(system_read(tr.base + at + (wide ? 4 : 2), 2));
  const std::uint32_t error = (ss & 0xfffcu) | ext;
  if ((ss & 0xfffc) == 0) throw CpuException{kInvalidTss, ext, 0};
  descriptor = read_descriptor(ss, kInvalidTss, ext);
  if ((ss & 3u) != level || descriptor->dpl() != level || !descriptor->is_writable_data()) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!descriptor->present()) throw CpuException{kStackFault, error, 0};
  top.segment = descriptor->segment(ss);
  return top;
}

/// Moves the stack pointer down by one push, and returns the offset of its place.
std::uint32_t Machine::next_push(StackTop& top, std::uint32_t width, std::uint32_t ext) const {
  const Segment& stack = top.segment;
  const std::uint32_t mask = stack_mask(stack);
  const std::uint32_t at = (top.esp - width) & mask;
  const bool expand_down = (stack.attributes & 0x0c) == 0x04;
  const bool fits = expand_down ? at > stack.limit && mask - at >= width - 1
                                : at <= stack.limit && stack.limit - at >= width - 1;
  if (!fits) {
    throw CpuException{kStackFault, top.inner ? ((stack.selector & 0xfffcu) | ext) : ext, 0};
  }
  top.esp = (top.esp & ~mask) | at;
  return at;
}

void Machine::push(StackTop& top, std::uint32_t value, std::uint32_t width, std::uint32_t ext) {
  const std::uint32_t at = next_push(top, width, ext);
  system_write(top.segment.base + at, value, width, top.user);
}

void Machine::interrupt(std::uint8_t vector, DeliveredEvent::Kind kind) {
  cpu_.halted = false;
  flight_.active = false;
  std::uint32_t return_eip = cpu_.engine.eip();
  if (cpu_.traits.keeps_one_prefix && cpu_.position.iteration != 0 &&
      flight_.info->prefix_bytes > 1) {
    // Only the last prefix is kept (8086 Family User's Manual, 2.7, "String instructions").
    return_eip = (return_eip + flight_.info->prefix_bytes - 1) & 0xffff;
  }
  try {
    raise({vector, std::nullopt, 0}, return_eip, kind);
  } catch (const UndefinedMemory& u) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "interrupt %02x needs memory that no evidence defines (%s, %u bytes at physical "
                  "%08x)",
                  vector, u.what, u.size, u.address.value);
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "", ""};
  }
}

}  // namespace citcat
