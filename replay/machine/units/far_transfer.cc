#include "replay/machine/units/far_transfer.h"

#include <array>
#include <optional>

#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/far_return.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/stack_pusher.h"
#include "replay/machine/units/table_descriptor.h"
#include "replay/machine/units/task_switch.h"

namespace citcat {

bool FarTransfer::transfers_here() {
  if (!cpu_.protected_mode()) return false;
  if (flight_.info->kind != InstructionClass::iret) return true;
  return (cpu_.engine.system_flags() & kFlagNt) != 0 || returns_.ignores_vm_flag();
}

void FarTransfer::transfer() {
  const DecodedInstruction& info = *flight_.info;
  const bool steps = (cpu_.engine.system_flags() & kFlagTf) != 0;
  const std::uint16_t task = cpu_.engine.tr().selector;
  const std::array<std::uint64_t, 6> bases = cpu_.bases();
  flight_.ea_count = info.ea_count;
  for (unsigned i = 0; i < info.ea_count; ++i) {
    flight_.ea[i] = kt_address(info, i, cpu_.linear.low32() - cpu_.code.base, cpu_.engine.gprs(),
                               bases.data(), cpu_.stack32());
  }
  flight_.store_count = 0;
  if (info.kind == InstructionClass::iret) {
    const bool nested = (cpu_.engine.system_flags() & kFlagNt) != 0;
    nested ? tasks_.return_to_previous() : returns_.return_within_level();
  } else {
    std::uint16_t selector = info.far_selector;
    std::uint32_t offset = info.far_offset;
    if (info.indirect) {
      // Only the pointer is read here; the descriptor decides whether anything is pushed.
      for_each_access(info, cpu_.engine.gprs(), bases.data(), cpu_.stack32(),
                      [&](const DataAccess& a) {
                        if (!a.write) operands_.access(a, info.operands[a.operand]);
                      });
      offset = operands_.part(info.operands[0], 0);
      selector = static_cast<std::uint16_t>(operands_.part(info.operands[1], 0));
    }
    transfer_to(selector, offset);
  }
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.code.forget();
  retirement_.report_completed();
  retirement_.retire();
  cpu_.resume_flag = (cpu_.engine.system_flags() & kFlagRf) != 0;
  // A single step that was due is forgotten with the task that asked for it.
  if (steps && cpu_.engine.tr().selector == task) debug_.add_pending(DebugUnit::kStep);
  if (debug_.pending() != 0) delivery_.take_debug_trap();
}

/// JMP or CALL to what `selector` names.
void FarTransfer::transfer_to(std::uint16_t selector, std::uint32_t offset) {
  const bool call = flight_.info->kind == InstructionClass::far_call;
  if (!cpu_.protected_mode()) return transfer_in_real_mode(selector, offset, call);
  if ((selector & 0xfffc) == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor d = segments_.read_descriptor(selector, kProtection, 0);
  d.is_system() ? transfer_through(d, call) : transfer_to_code(d, offset, call);
}

void FarTransfer::transfer_through(const Descriptor& gate, bool call) {
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
  const TaskSwitch::TaskSource source =
      call ? TaskSwitch::TaskSource::call : TaskSwitch::TaskSource::jump;
  if (is_task) {
    if ((gate.selector & 4) != 0) throw CpuException{kProtection, error, 0};
    if (!gate.present()) throw CpuException{kNotPresent, error, 0};
    tasks_.switch_to(gate, source, next, cpu_.engine.eflags(), 0);
    return;
  }
  if (!gate.present()) throw CpuException{kNotPresent, error, 0};
  tasks_.switch_to(tasks_.read_task_descriptor(gate.gate_selector(), 0), source, next,
                   cpu_.engine.eflags(), 0);
}

void FarTransfer::transfer_through_call_gate(const Descriptor& gate, bool call) {
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  if (!gate.present()) throw CpuException{kNotPresent, gate.selector & 0xfffcu, 0};
  const std::uint16_t selector = gate.gate_selector();
  const std::uint32_t error = selector & 0xfffcu;
  if (error == 0) throw CpuException{kProtection, 0u, 0};
  const Descriptor code = segments_.read_descriptor(selector, kProtection, 0);
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
  segments_.mark_accessed(code);
  cpu_.engine.set_segment(kCs, new_code);
  cpu_.engine.set_eip(target);
}

/// Return address, and for a more privileged callee the old stack pointer and `parameters` words.
void FarTransfer::push_gate_frame(const Descriptor& code, bool inner, bool wide,
                                  std::uint32_t parameters) {
  const std::uint32_t width = wide ? 4 : 2;
  const Segment old_stack = cpu_.engine.segment(kSs);
  const std::uint32_t old_esp = cpu_.engine.gpr(kEsp);
  StackTop top{old_stack, old_esp, cpu_.user_mode(), false};
  std::optional<Descriptor> descriptor;
  if (inner) {
    top = stack_.inner_stack(code.dpl(), 0, descriptor);
    stack_.push(top, old_stack.selector, width, 0);
    stack_.push(top, old_esp, width, 0);
    // Read with the caller's rights: the level changes when all is done (SDM vol. 2, CALL).
    for (std::uint32_t i = parameters; i-- > 0;)
      stack_.push(top, returns_.read_stack(i * width, width), width, 0);
  }
  stack_.push(top, cpu_.engine.segment_selector(kCs), width, 0);
  stack_.push(top, cpu_.engine.eip() + flight_.info->length, width, 0);
  if (descriptor) {
    segments_.mark_accessed(*descriptor);
    cpu_.engine.set_segment(kSs, top.segment);
  }
  cpu_.engine.set_gpr(kEsp, top.esp);
}

/// JMP and CALL to a code segment. The engine names the wrong selector where the offset lies beyond
/// its limit, after it has pushed the return address.
void FarTransfer::transfer_to_code(const Descriptor& code, std::uint32_t offset, bool call) {
  const std::uint32_t error = code.selector & 0xfffcu;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  const bool allowed =
      code.conforming() ? code.dpl() <= cpl : code.dpl() == cpl && (code.selector & 3u) <= cpl;
  if (!code.is_code() || !allowed) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const Segment segment = code.segment(static_cast<std::uint16_t>(error | cpl));
  const std::uint32_t width = flight_.info->operand_bytes;
  const std::uint32_t target = width == 2 ? offset & 0xffff : offset;
  if (target > segment.limit) throw CpuException{kProtection, 0u, 0};
  if (call) push_return_address(width);
  segments_.mark_accessed(code);
  cpu_.engine.set_segment(kCs, segment);
  cpu_.engine.set_eip(target);
}

/// Pushes the return address of a far CALL. Both places are looked at before anything is stored: a
/// fault leaves neither.
void FarTransfer::push_return_address(std::uint32_t width) {
  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), cpu_.user_mode(), false};
  stack_.page_in_pushes(top, width, 2);
  stack_.push(top, cpu_.engine.segment_selector(kCs), width, 0);
  stack_.push(top, cpu_.engine.eip() + flight_.info->length, width, 0);
  cpu_.engine.set_gpr(kEsp, top.esp);
}

/// Far JMP and CALL in real and virtual-8086 mode.
void FarTransfer::transfer_in_real_mode(std::uint16_t selector, std::uint32_t offset, bool call) {
  const std::uint32_t width = flight_.info->operand_bytes;
  if (offset > cpu_.engine.segment_limit(kCs)) throw CpuException{kProtection, 0u, 0};
  if (call) push_return_address(width);
  cpu_.engine.set_segment(kCs, real_mode_segment(cpu_.engine.segment(kCs), selector));
  cpu_.engine.set_eip(offset);
}

}  // namespace citcat
