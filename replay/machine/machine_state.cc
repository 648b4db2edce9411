// The machine's state as a value: registers and checkpoints.

#include <algorithm>

#include "replay/machine/machine.h"
#include "replay/machine/machine_descriptor.h"

namespace citcat {

void Machine::set_registers(const CpuState& state) {
  msrs_ = state.msrs;
  cpuid_ = state.cpuid;
  tsc_ = state.tsc;
  dr_ = state.dr;
  find_breakpoints();
  for (int i = 0; i < 8; ++i) cpu_.engine.set_gpr(i, state.gpr[static_cast<std::size_t>(i)]);
  for (int i = 0; i < 6; ++i)
    cpu_.engine.set_segment(i, state.segment[static_cast<std::size_t>(i)]);
  cpu_.engine.set_ldtr(state.ldtr);
  cpu_.engine.set_tr(state.tr);
  cpu_.engine.set_gdtr(state.gdtr);
  cpu_.engine.set_idtr(state.idtr);
  cpu_.engine.set_eip(state.eip);
  const bool protected_16_bit = (state.cr0 & 1) != 0;
  cpu_.engine.set_eflags(cpu_.traits.sixteen_bit
                             ? loaded_flags(cpu_.model, protected_16_bit, state.eflags)
                             : state.eflags);
  cpu_.engine.set_cr(0, state.cr0);
  cpu_.engine.set_cr(2, state.cr2);
  cpu_.engine.set_cr(3, state.cr3);
  cpu_.engine.set_cr(4, state.cr4);
  // 8086-class and 286 machines gate A20 outside the processor; 20 pins wrap by themselves.
  cpu_.engine.set_a20_mask(cpu_.traits.has_a20() ? state.a20_mask : 0xfffff);
  cpu_.engine.write_fx(state.fx);
  cpu_.engine.clear_inhibit();
  cpu_.engine.sync_mode();
  cpu_.engine.flush_tlb();
  cpu_.halted = state.halted;
  a20_gate_.load(state.a20_mask);
  in_smm_ = state.in_smm;
  smbase_ = state.smbase;
  smbase_known_ = !is_unknown(state, "smbase");
  cpu_.resume_flag = (state.eflags & kFlagRf) != 0;
  cpu_.engine.drop_resume_flag();
}

CpuState Machine::save() const {
  CpuState s = loaded_;
  for (int i = 0; i < 8; ++i) s.gpr[static_cast<std::size_t>(i)] = cpu_.engine.gpr(i);
  for (int i = 0; i < 6; ++i) s.segment[static_cast<std::size_t>(i)] = cpu_.engine.segment(i);
  s.ldtr = cpu_.engine.ldtr();
  s.tr = cpu_.engine.tr();
  s.gdtr = cpu_.engine.gdtr();
  s.idtr = cpu_.engine.idtr();
  s.eip = cpu_.engine.eip();
  s.eflags = cpu_.flags();
  s.cr0 = cpu_.engine.cr(0);
  s.cr2 = cpu_.engine.cr(2);
  s.cr3 = cpu_.engine.cr(3);
  s.cr4 = cpu_.engine.cr(4);
  s.a20_mask = cpu_.engine.a20_mask();
  s.dr = dr_;
  s.msrs = msrs_;
  s.tsc = tsc_;
  s.halted = cpu_.halted;
  s.in_smm = in_smm_;
  s.smbase = smbase_;
  if (smbase_known_) std::erase(s.unknown, "smbase");
  cpu_.engine.read_fx(s.fx);
  std::copy_n(loaded_.fx.begin() + 28, 4, s.fx.begin() + 28);  // MXCSR_MASK never changes
  return s;
}

Machine::Snapshot Machine::snapshot() const {
  Snapshot s;
  s.cpu = save();
  s.position = cpu_.position;
  s.pages = cpu_.memory.save_changed();
  s.tlb = cpu_.mmu.save();
  s.model_specific_results = model_specific_results_;
  s.resume_flag = cpu_.resume_flag;
  s.interrupts_inhibited = cpu_.engine.inhibited();
  s.shut_down = cpu_.shut_down;
  s.awaits_output_port = a20_gate_.awaits_output_port();
  s.in_stack_shadow = stack_shadow_ == cpu_.position.instruction;
  s.debug_pending = debug_pending_;
  s.smbase = smbase_;
  return s;
}

void Machine::Snapshot::set_register(const std::string& name, std::uint64_t value) {
  citcat::set_register(cpu, name, value);
  std::erase(cpu.unknown, name);
  smbase = cpu.smbase;
}

void Machine::restore(const Snapshot& s, const MemoryImage& image) {
  flight_.discard();
  cpu_.position.iteration = 0;
  cpu_.memory.restore(image, s.pages);
  set_registers(s.cpu);
  if (s.interrupts_inhibited) cpu_.engine.step_once();
  cpu_.engine.flush_tlb();
  cpu_.mmu.restore(*s.tlb);
  cpu_.position = s.position;
  // Between two iterations the next report of this place continues the same REP.
  cpu_.linear = cpu_.engine.segment_base(kCs) + cpu_.engine.eip();
  cpu_.code.forget();
  // Translations and their templates stay: those of frames that held something else are gone with
  // what cpu_.memory took back.
  running_.block = nullptr;
  running_.rolled_back = false;
  running_.speculated = false;
  careful_until_ = 0;
  cpu_.resume_flag = s.resume_flag;
  flight_.resuming = false;
  flight_.retries = 0;
  model_specific_results_ = s.model_specific_results;
  first_model_specific_.reset();
  cpu_.shut_down = s.shut_down;
  a20_gate_.set_awaits_output_port(s.awaits_output_port);
  stack_shadow_ = s.in_stack_shadow ? s.position.instruction : ~std::uint64_t{0};
  debug_pending_ = s.debug_pending;
  smbase_ = s.smbase;
  cpu_.halted = s.cpu.halted;
}

}  // namespace citcat
