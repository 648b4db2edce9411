// Far transfers: through call gates, task gates and task segments (Intel SDM vol. 3, 5.8 and
// chapter 7), and those in machine_transfers.cc. The engine would make their memory accesses
// unobserved; here each descriptor read, task segment access and push is told like any other.

#include <algorithm>
#include <array>

#include "formats/io/error.h"
#include "replay/machine/machine_descriptor.h"

namespace citcat {

namespace {

/// Where a task segment keeps the dynamic state (SDM vol. 3, figures 7-2 and 7-10).
struct TaskLayout {
  std::uint32_t cr3, eip, registers, segments, ldt, trap;
  std::uint32_t width;  ///< bytes of a register
  unsigned segment_count;
  std::uint32_t limit_to_save;  ///< last byte written when the task is left
  std::uint32_t limit_to_load;
};
constexpr TaskLayout kTask32{0x1c, 0x20, 0x28, 0x48, 0x60, 0x64, 4, 6, 0x5f, 0x67};
constexpr TaskLayout kTask16{0, 0x0e, 0x12, 0x22, 0x2a, 0, 2, 4, 0x29, 0x2b};

constexpr std::uint32_t kCr0Ts = 8, kCr0Pg = 1u << 31;
constexpr std::uint32_t kWideTaskType = 8;  ///< bit of the type that a 32-bit task segment has

}  // namespace

/// What a task segment holds, as far as a switch to it loads it.
struct Machine::TaskState {
  std::uint32_t cr3 = 0, eip = 0, eflags = 0;
  std::array<std::uint32_t, 8> gpr{};
  std::array<std::uint16_t, 6> selectors{};  ///< in SegmentRegister order
  std::uint16_t ldt = 0;
  bool trap = false;  ///< T bit
};

// ---------------------------------------------------------------------------------------------
// Which instructions belong here

/// Whether the far transfer about to run is made here. In protected mode all jumps and calls are,
/// and what of IRET goes to another task, or elsewhere than the engine would go.
bool Machine::transfers_here() {
  if (!cpu_.protected_mode()) return false;
  if (flight_.info->kind != InstructionClass::iret) return true;
  return (cpu_.engine.system_flags() & kFlagNt) != 0 || ignores_vm_flag();
}

/// Tells the read of a descriptor that the engine will make.
void Machine::tell_descriptor(std::uint16_t selector) {
  const auto type_byte = descriptor_type_byte(selector);
  if (!type_byte) return;  // the engine will refuse it
  system_read(*type_byte - 5, 4);
  system_read(*type_byte - 1, 4);
}

/// LAR, LSL, VERR and VERW look a descriptor up.
void Machine::tell_looked_up_descriptor() {
  const bool looks_up = flight_.info->opcode == 2 || flight_.info->opcode == 3 ||
                        (flight_.info->opcode == 0 && (flight_.info->reg_field & 6) == 4);
  if (looks_up && cpu_.protected_mode()) tell_descriptor(operand_selector());
}

/// The permission bits of a port (SDM vol. 1, 19.5.2), where the processor asks for them: they are
/// told, and throw where they refuse the access. The engine lets every one through.
void Machine::check_port_permission() {
  const std::uint32_t flags = cpu_.engine.system_flags();
  if ((cpu_.engine.hflags() & kHfPe) == 0) return;
  const bool v86 = (flags & kFlagVm) != 0;
  if (!v86 && (cpu_.engine.hflags() & kHfCpl) <= (flags >> 12 & 3)) return;
  constexpr std::uint32_t kMapBase = 0x66;
  constexpr CpuException kRefused{13, 0u, 0};
  const Segment task = cpu_.engine.tr();
  if ((task.attributes & kWideTaskType) == 0 || task.limit < kMapBase + 1) throw kRefused;
  const bool immediate = flight_.info->opcode_map == 0 && (flight_.info->opcode & 0xf8) == 0xe0;
  const std::uint32_t port = immediate ? flight_.info->immediate : cpu_.engine.gpr(kEdx) & 0xffff;
  // Two bytes are read, whatever the size of the access: it may reach into the next one.
  const std::uint32_t at = system_read(task.base + kMapBase, 2) + port / 8;
  if (at + 1 > task.limit) throw kRefused;
  const std::uint32_t wanted = ((1u << flight_.info->operand_bytes) - 1) << port % 8;
  if ((system_read(task.base + at, 2) & wanted) != 0) throw kRefused;
}

/// Tells the descriptors that RETF or IRET reads.
void Machine::tell_transfer_descriptors() {
  const DecodedInstruction& info = *flight_.info;
  const auto selector_at = [&](std::uint32_t linear) {
    return static_cast<std::uint16_t>(read_value(linear, 2));
  };
  const std::uint32_t width = info.operand_bytes;
  const Segment stack = cpu_.engine.segment(kSs);
  const auto stacked = [&](std::uint32_t words, std::uint32_t bytes_more) {
    return stack.base + ((cpu_.engine.gpr(kEsp) + words * width + bytes_more) & stack_mask(stack));
  };
  const bool interrupt_return = info.kind == InstructionClass::iret;
  const auto tell_words = [&](std::uint32_t from, std::uint32_t to, std::uint32_t more) {
    for (std::uint32_t i = from; i < to; ++i) tell_stack_read(stacked(i, more), width);
  };
  if (interrupt_return && width == 4) {
    if ((selector_at(stacked(2, 2)) & kFlagVm >> 16) != 0) {  // to virtual-8086 mode
      tell_words(3, 9, 0);
      return;
    }
  }
  const std::uint16_t selector = selector_at(stacked(1, 0));
  if (!descriptor_type_byte(selector)) return;  // the engine will refuse it
  const Descriptor code = read_descriptor(selector, kProtection, 0);
  const std::uint32_t level = selector & 3u;
  // Refused before the outer stack pointer is read (SDM vol. 2, RET and IRET).
  if (level == (cpu_.engine.hflags() & kHfCpl) || !code_admits_return(code)) return;
  const std::uint32_t released = interrupt_return ? 0 : info.immediate;
  const std::uint32_t outer = interrupt_return ? 3 : 2;
  tell_stack_read(stacked(outer, released), width);
  tell_stack_read(stacked(outer + 1, released), 2);
  tell_descriptor(selector_at(stacked(outer + 1, released)));
}

/// Tells a read of the stack that is not among the instruction's operands.
void Machine::tell_stack_read(std::uint32_t linear, std::uint32_t size) {
  while (size != 0) {
    const std::uint32_t n = std::min(size, kPageSize - (linear & kPageMask));
    const PhysAddr at = cpu_.mmu.translate(LinearAddr{linear}, Access::read, cpu_.user_mode());
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, n)) {
      throw UndefinedMemory{at, n, "stack"};
    }
    if (cpu_.wants_reads) cpu_.sink->read(at, n, AccessKind::data, cpu_.position);
    linear += n;
    size -= n;
  }
}

void Machine::emulate_system_transfer() {
  const DecodedInstruction& info = *flight_.info;
  const bool steps = (cpu_.engine.system_flags() & kFlagTf) != 0;
  const std::uint16_t task = cpu_.engine.tr().selector;
  std::array<std::uint32_t, 6> bases;
  for (int i = 0; i < 6; ++i) bases[static_cast<std::size_t>(i)] = cpu_.engine.segment_base(i);
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] = kt_address(info, i, cpu_.linear - cpu_.code.base, cpu_.engine.gprs(),
                               bases.data(), cpu_.stack32());
  }
  flight_.store_count = 0;
  if (info.kind == InstructionClass::iret) {
    const bool nested = (cpu_.engine.system_flags() & kFlagNt) != 0;
    nested ? return_to_previous_task() : return_within_level();
  } else {
    std::uint16_t selector = info.far_selector;
    std::uint32_t offset = info.far_offset;
    if (info.indirect) {
      // Of the operands only the pointer: whether anything is pushed, the descriptor decides.
      for_each_access(info, cpu_.engine.gprs(), bases.data(), cpu_.stack32(),
                      [&](const DataAccess& a) {
                        if (!a.write) access(a, info.operands[a.operand]);
                      });
      offset = operand_part(info.operands[0], 0);
      selector = static_cast<std::uint16_t>(operand_part(info.operands[1], 0));
    }
    transfer_to(selector, offset);
  }
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.code.forget();
  report_completed();
  retire();
  cpu_.resume_flag = (cpu_.engine.system_flags() & kFlagRf) != 0;
  // A single step that was due is forgotten with the task that asked for it.
  if (steps && cpu_.engine.tr().selector == task) debug_pending_ |= kDr6Step;
  if (debug_pending_ != 0) take_debug_trap();
}

/// JMP or CALL to what `selector` names.
void Machine::transfer_to(std::uint16_t selector, std::uint32_t offset) {
  const bool call = flight_.info->kind == InstructionClass::far_call;
  if (!cpu_.protected_mode()) return transfer_in_real_mode(selector, offset, call);
  if ((selector & 0xfffc) == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor d = read_descriptor(selector, kProtection, 0);
  d.is_system() ? transfer_through(d, call) : transfer_to_code(d, offset, call);
}

void Machine::transfer_through(const Descriptor& gate, bool call) {
  // SDM vol. 2, JMP and CALL: both compare the descriptor's DPL with CPL and RPL.
  const std::uint32_t error = gate.selector & 0xfffcu;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  const bool is_task = gate.is(SystemType::tss16) || gate.is(SystemType::tss32);
  const bool is_call_gate = gate.is(SystemType::call_gate16) || gate.is(SystemType::call_gate32);
  if ((!is_task && !is_call_gate && !gate.is(SystemType::task_gate)) || gate.dpl() < cpl ||
      gate.dpl() < (gate.selector & 3u)) {
    throw CpuException{kProtection, error, 0};
  }
  if (is_call_gate) {
    transfer_through_call_gate(gate, call);
    return;
  }
  const std::uint32_t next = cpu_.engine.eip() + flight_.info->length;
  const TaskSource source = call ? TaskSource::call : TaskSource::jump;
  if (is_task) {
    if ((gate.selector & 4) != 0) throw CpuException{kProtection, error, 0};
    if (!gate.present()) throw CpuException{kNotPresent, error, 0};
    task_switch(gate, source, next, cpu_.engine.eflags(), 0);
    return;
  }
  if (!gate.present()) throw CpuException{kNotPresent, error, 0};
  task_switch(read_task_descriptor(gate.gate_selector(), 0), source, next, cpu_.engine.eflags(), 0);
}

/// The task segment that a task gate names.
Machine::Descriptor Machine::read_task_descriptor(std::uint16_t selector, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 4) != 0) throw CpuException{kProtection, error, 0};
  const Descriptor task = read_descriptor(selector, kProtection, ext);
  if (!task.is(SystemType::tss16) && !task.is(SystemType::tss32)) {
    throw CpuException{kProtection, error, 0};
  }
  if (!task.present()) throw CpuException{kNotPresent, error, 0};
  return task;
}

// ---------------------------------------------------------------------------------------------
// Call gates (SDM vol. 3, 5.8.3 to 5.8.5)

void Machine::transfer_through_call_gate(const Descriptor& gate, bool call) {
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  if (!gate.present()) throw CpuException{kNotPresent, gate.selector & 0xfffcu, 0};
  const std::uint16_t selector = gate.gate_selector();
  const std::uint32_t error = selector & 0xfffcu;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = read_descriptor(selector, kProtection, 0);
  const bool same_only = !call && !code.conforming();
  if (!code.is_code() || code.dpl() > cpl || (same_only && code.dpl() != cpl)) {
    throw CpuException{kProtection, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const bool wide = gate.is(SystemType::call_gate32);
  const std::uint32_t target = wide ? gate.gate_offset() : gate.gate_offset() & 0xffff;
  const bool inner = call && !code.conforming() && code.dpl() < cpl;
  const std::uint32_t new_cpl = inner ? code.dpl() : cpl;
  const Segment new_code = code.segment(static_cast<std::uint16_t>((selector & ~3u) | new_cpl));
  if (target > new_code.limit) throw CpuException{kProtection, 0u, 0};
  if (call) push_gate_frame(code, inner, wide, gate.high & 0x1f);
  mark_accessed(code);
  cpu_.engine.set_segment(kCs, new_code);
  cpu_.engine.set_eip(target);
}

/// Return address, and for a more privileged callee the old stack pointer and `parameters` words.
void Machine::push_gate_frame(const Descriptor& code, bool inner, bool wide,
                              std::uint32_t parameters) {
  const std::uint32_t width = wide ? 4 : 2;
  const Segment old_stack = cpu_.engine.segment(kSs);
  const std::uint32_t old_esp = cpu_.engine.gpr(kEsp);
  StackTop top{old_stack, old_esp, cpu_.user_mode(), false};
  std::optional<Descriptor> descriptor;
  if (inner) {
    top = inner_stack(code.dpl(), 0, descriptor);
    push(top, old_stack.selector, width, 0);
    push(top, old_esp, width, 0);
    // Read with the caller's rights: the level changes when all is done (SDM vol. 2, CALL).
    for (std::uint32_t i = parameters; i-- > 0;) push(top, read_stack(i * width, width), width, 0);
  }
  push(top, cpu_.engine.segment_selector(kCs), width, 0);
  push(top, cpu_.engine.eip() + flight_.info->length, width, 0);
  if (descriptor) {
    mark_accessed(*descriptor);
    cpu_.engine.set_segment(kSs, top.segment);
  }
  cpu_.engine.set_gpr(kEsp, top.esp);
}

// ---------------------------------------------------------------------------------------------
// Task switches (SDM vol. 3, 7.3)

/// IRET with NT set: to the task that the link field of the current one names.
void Machine::return_to_previous_task() {
  const auto link = static_cast<std::uint16_t>(system_read(cpu_.engine.tr().base, 2));
  const std::uint32_t error = link & 0xfffcu;
  if ((link & 4) != 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor task = read_descriptor(link, kInvalidTss, 0);
  if (!task.is(SystemType::busy_tss16) && !task.is(SystemType::busy_tss32)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!task.present()) throw CpuException{kNotPresent, error, 0};
  task_switch(task, TaskSource::iret, cpu_.engine.eip() + flight_.info->length,
              cpu_.engine.eflags(), 0);
}

void Machine::task_switch(const Descriptor& task, TaskSource source, std::uint32_t saved_eip,
                          std::uint32_t saved_flags, std::uint32_t ext) {
  const bool wide = (task.type() & kWideTaskType) != 0;
  const TaskLayout& layout = wide ? kTask32 : kTask16;
  const Segment next = task.segment(task.selector);
  if (next.limit < layout.limit_to_load) {
    throw CpuException{kInvalidTss, (task.selector & 0xfffcu) | ext, 0};
  }
  const Segment old = cpu_.engine.tr();
  const TaskLayout& old_layout = (old.attributes & kWideTaskType) != 0 ? kTask32 : kTask16;
  if (old.limit < old_layout.limit_to_save) {
    throw CpuException{kInvalidTss, (old.selector & 0xfffcu) | ext, 0};
  }
  const bool nests = source == TaskSource::call || source == TaskSource::event;
  // SDM vol. 3, 7.3, step 4: both task segments are paged in before anything is stored.
  page_in(old.base + old_layout.eip, old.base + old_layout.limit_to_save, Access::write);
  if (nests) page_in(next.base, next.base + 1, Access::write);
  page_in(next.base, next.base + layout.limit_to_load, Access::read);
  if (!nests) {
    const std::uint32_t at = cpu_.engine.gdtr().base + (old.selector & 0xfff8u) + 4;
    system_write(at, system_read(at, 4) & ~kDescBusy, 4);
  }
  if (source == TaskSource::iret) saved_flags &= ~kFlagNt;

  const auto save = [&](std::uint32_t offset, std::uint32_t value, std::uint32_t size) {
    system_write(old.base + offset, value, size);
  };
  const std::uint32_t w = old_layout.width;
  save(old_layout.eip, saved_eip, w);
  save(old_layout.eip + w, saved_flags, w);
  for (unsigned i = 0; i < 8; ++i) {
    save(old_layout.registers + i * w, cpu_.engine.gpr(static_cast<int>(i)), w);
  }
  for (unsigned i = 0; i < old_layout.segment_count; ++i) {
    save(old_layout.segments + i * w, cpu_.engine.segment_selector(static_cast<int>(i)), 2);
  }
  if (nests) system_write(next.base, old.selector, 2);
  const TaskState state = read_task(next.base, wide);
  if (source != TaskSource::iret) {
    system_write(task.linear + 4, system_read(task.linear + 4, 4) | kDescBusy, 4);
  }

  // From here on faults belong to the new task (SDM vol. 3, 7.3, "commit point").
  Segment tr = next;
  tr.attributes = static_cast<std::uint16_t>(tr.attributes | kDescBusy >> 8);
  cpu_.engine.set_tr(tr);
  enter_task(state, wide, nests, ext);
}

/// Walks to the one or two pages of [first, last], as an access would that goes through them
/// upward; throws what it would throw.
void Machine::page_in(std::uint32_t first, std::uint32_t last, Access access) {
  cpu_.mmu.translate(LinearAddr{first}, access, false);
  const std::uint32_t last_page = last & ~kPageMask;
  if (last_page != (first & ~kPageMask)) cpu_.mmu.translate(LinearAddr{last_page}, access, false);
}

Machine::TaskState Machine::read_task(std::uint32_t base, bool wide) {
  const TaskLayout& layout = wide ? kTask32 : kTask16;
  const std::uint32_t w = layout.width;
  TaskState state;
  if (wide && (cpu_.engine.cr(0) & kCr0Pg) != 0) state.cr3 = system_read(base + layout.cr3, 4);
  state.eip = system_read(base + layout.eip, w);
  state.eflags = system_read(base + layout.eip + w, w);
  for (unsigned i = 0; i < 8; ++i) {
    state.gpr[i] = system_read(base + layout.registers + i * w, w);
    // The manuals do not say what becomes of the upper halves; the recorded machines set them.
    if (!wide) state.gpr[i] |= 0xffff0000;
  }
  for (unsigned i = 0; i < layout.segment_count; ++i) {
    state.selectors[i] = static_cast<std::uint16_t>(system_read(base + layout.segments + i * w, 2));
  }
  state.ldt = static_cast<std::uint16_t>(system_read(base + layout.ldt, 2));
  if (wide) state.trap = (system_read(base + layout.trap, 2) & 1) != 0;
  return state;
}

void Machine::enter_task(const TaskState& state, bool wide, bool nested, std::uint32_t ext) {
  task_entered_ = true;
  cpu_.engine.set_cr(0, cpu_.engine.cr(0) | kCr0Ts);
  // SDM vol. 3, 17.2.4: a task switch clears the local enable flags.
  constexpr std::uint32_t kDr7Local = 0x155;
  dr_[7] &= ~kDr7Local;
  find_breakpoints();
  for (unsigned i = 0; i < 8; ++i) cpu_.engine.set_gpr(static_cast<int>(i), state.gpr[i]);
  cpu_.engine.set_eip(state.eip);
  cpu_.engine.set_eflags(state.eflags | (nested ? kFlagNt : 0));
  const bool v86 = (state.eflags & kFlagVm) != 0;
  // Selectors are loaded whatever becomes of their descriptors.
  for (int i = 0; i < 6; ++i) {
    const std::uint16_t s = state.selectors[static_cast<std::size_t>(i)];
    cpu_.engine.set_segment(i, v86 ? Segment{s, std::uint32_t{s} << 4, 0xffff, 0xf3, false}
                                   : Segment{s, 0, 0, 0, true});
  }
  if (wide && (cpu_.engine.cr(0) & kCr0Pg) != 0 && state.cr3 != cpu_.engine.cr(3)) {
    cpu_.engine.set_cr(3, state.cr3);
    cpu_.engine.flush_tlb();
    cpu_.mmu.control_changed(true);
    if (cpu_.sink != nullptr) cpu_.sink->address_space(state.cr3, cpu_.position);
  }
  cpu_.engine.sync_mode();
  load_task_ldt(state.ldt, ext);
  if (!v86) {
    const std::uint32_t cpl = state.selectors[kCs] & 3u;
    load_task_stack(state.selectors[kSs], cpl, ext);
    for (const int s : {kDs, kEs, kFs, kGs}) {
      load_task_data(s, state.selectors[static_cast<std::size_t>(s)], cpl, ext);
    }
    load_task_code(state.selectors[kCs], ext);
  }
  cpu_.engine.sync_mode();
  if (cpu_.engine.eip() > cpu_.engine.segment_limit(kCs)) throw CpuException{kProtection, ext, 0};
  if (state.trap) debug_pending_ |= kDr6TaskSwitch;
}

void Machine::load_task_ldt(std::uint16_t selector, std::uint32_t ext) {
  cpu_.engine.set_ldtr({selector, 0, 0, 0, true});
  if ((selector & 0xfffc) == 0) return;
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 4) != 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor ldt = read_descriptor(selector, kInvalidTss, ext);
  if (!ldt.is(SystemType::ldt) || !ldt.present()) throw CpuException{kInvalidTss, error, 0};
  cpu_.engine.set_ldtr(ldt.segment(selector));
}

void Machine::load_task_stack(std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 0xfffc) == 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor stack = read_descriptor(selector, kInvalidTss, ext);
  if (!stack.is_writable_data()) throw CpuException{kInvalidTss, error, 0};
  if (!stack.present()) throw CpuException{kStackFault, error, 0};
  if (stack.dpl() != cpl || stack.dpl() != (selector & 3u)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  mark_accessed(stack);
  cpu_.engine.set_segment(kSs, stack.segment(selector));
}

void Machine::load_task_data(int s, std::uint16_t selector, std::uint32_t cpl, std::uint32_t ext) {
  if ((selector & 0xfffc) == 0) return;
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  const Descriptor data = read_descriptor(selector, kInvalidTss, ext);
  const bool privileged = !data.conforming() && (data.dpl() < cpl || data.dpl() < (selector & 3u));
  if (!data.is_readable() || privileged) throw CpuException{kInvalidTss, error, 0};
  if (!data.present()) throw CpuException{kNotPresent, error, 0};
  mark_accessed(data);
  cpu_.engine.set_segment(s, data.segment(selector));
}

void Machine::load_task_code(std::uint16_t selector, std::uint32_t ext) {
  const std::uint32_t error = (selector & 0xfffcu) | ext;
  if ((selector & 0xfffc) == 0) throw CpuException{kInvalidTss, error, 0};
  const Descriptor code = read_descriptor(selector, kInvalidTss, ext);
  const std::uint32_t rpl = selector & 3u;
  if (!code.is_code_of(rpl)) {
    throw CpuException{kInvalidTss, error, 0};
  }
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  mark_accessed(code);
  cpu_.engine.set_segment(kCs, code.segment(selector));
}

/// An exception or interrupt through a task gate (SDM vol. 3, 6.14.2).
void Machine::deliver_through_task(std::uint16_t selector, const CpuException& exception,
                                   const TaskReturn& from, std::uint32_t ext) {
  const Descriptor task = read_task_descriptor(selector, ext);
  task_switch(task, TaskSource::event, from.eip, from.eflags, ext);
  if (!exception.error_code) return;
  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), false, false};
  push(top, *exception.error_code, (task.type() & kWideTaskType) != 0 ? 4 : 2, ext);
  cpu_.engine.set_gpr(kEsp, top.esp);
}

}  // namespace citcat
