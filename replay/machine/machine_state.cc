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
  for (int i = 0; i < 8; ++i) engine_.set_gpr(i, state.gpr[static_cast<std::size_t>(i)]);
  for (int i = 0; i < 6; ++i) engine_.set_segment(i, state.segment[static_cast<std::size_t>(i)]);
  engine_.set_ldtr(state.ldtr);
  engine_.set_tr(state.tr);
  engine_.set_gdtr(state.gdtr);
  engine_.set_idtr(state.idtr);
  engine_.set_eip(state.eip);
  const bool protected_16_bit = (state.cr0 & 1) != 0;
  engine_.set_eflags(sixteen_bit_ ? loaded_flags(model_, protected_16_bit, state.eflags)
                                  : state.eflags);
  engine_.set_cr(0, state.cr0);
  engine_.set_cr(2, state.cr2);
  engine_.set_cr(3, state.cr3);
  engine_.set_cr(4, state.cr4);
  // 8086-class and 286 machines gate A20 outside the processor; 20 pins wrap by themselves.
  engine_.set_a20_mask(traits_.has_a20() ? state.a20_mask : 0xfffff);
  engine_.write_fx(state.fx);
  engine_.clear_inhibit();
  engine_.sync_mode();
  engine_.flush_tlb();
  halted_ = state.halted;
  a20_gate_.load(state.a20_mask);
  in_smm_ = state.in_smm;
  smbase_ = state.smbase;
  smbase_known_ = !is_unknown(state, "smbase");
  resume_flag_ = (state.eflags & kFlagRf) != 0;
  engine_.drop_resume_flag();
}

CpuState Machine::save() const {
  CpuState s = loaded_;
  for (int i = 0; i < 8; ++i) s.gpr[static_cast<std::size_t>(i)] = engine_.gpr(i);
  for (int i = 0; i < 6; ++i) s.segment[static_cast<std::size_t>(i)] = engine_.segment(i);
  s.ldtr = engine_.ldtr();
  s.tr = engine_.tr();
  s.gdtr = engine_.gdtr();
  s.idtr = engine_.idtr();
  s.eip = engine_.eip();
  s.eflags = flags();
  s.cr0 = engine_.cr(0);
  s.cr2 = engine_.cr(2);
  s.cr3 = engine_.cr(3);
  s.cr4 = engine_.cr(4);
  s.a20_mask = engine_.a20_mask();
  s.dr = dr_;
  s.msrs = msrs_;
  s.tsc = tsc_;
  s.halted = halted_;
  s.in_smm = in_smm_;
  s.smbase = smbase_;
  if (smbase_known_) std::erase(s.unknown, "smbase");
  engine_.read_fx(s.fx);
  std::copy_n(loaded_.fx.begin() + 28, 4, s.fx.begin() + 28);  // MXCSR_MASK never changes
  return s;
}

Machine::Snapshot Machine::snapshot() const {
  Snapshot s;
  s.cpu = save();
  s.position = position_;
  s.pages = memory_.save_changed();
  s.tlb = mmu_.save();
  s.model_specific_results = model_specific_results_;
  s.resume_flag = resume_flag_;
  s.interrupts_inhibited = engine_.inhibited();
  s.shut_down = shut_down_;
  s.awaits_output_port = a20_gate_.awaits_output_port();
  s.in_stack_shadow = stack_shadow_ == position_.instruction;
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
  discard_in_flight();
  memory_.restore(image, s.pages);
  set_registers(s.cpu);
  if (s.interrupts_inhibited) engine_.step_once();
  engine_.flush_tlb();
  mmu_.restore(*s.tlb);
  position_ = s.position;
  // Between two iterations the next report of this place continues the same REP.
  linear_ = engine_.segment_base(kCs) + engine_.eip();
  code_page_ = kNoPage;
  // Translations and their templates stay: those of frames that held something else are gone with
  // what memory_ took back.
  pending_ = nullptr;
  rolled_back_ = false;
  speculated_ = false;
  careful_until_ = 0;
  resume_flag_ = s.resume_flag;
  resuming_ = false;
  native_retries_ = 0;
  model_specific_results_ = s.model_specific_results;
  first_model_specific_.reset();
  shut_down_ = s.shut_down;
  a20_gate_.set_awaits_output_port(s.awaits_output_port);
  stack_shadow_ = s.in_stack_shadow ? s.position.instruction : ~std::uint64_t{0};
  debug_pending_ = s.debug_pending;
  smbase_ = s.smbase;
  halted_ = s.cpu.halted;
}

}  // namespace citcat
