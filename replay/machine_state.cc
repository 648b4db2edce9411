// The machine's state as a value: checkpoints.

#include "replay/machine.h"

namespace citcat {

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

void Machine::restore(const Snapshot& s, const MemoryImage& image) {
  discard_in_flight();
  memory_.restore(image, s.pages);
  set_registers(s.cpu);
  if (s.interrupts_inhibited) engine_.step_once();
  // Quiet translations must not outlive the templates that tell what they do.
  if (by_blocks_) engine_.flush_code();
  engine_.flush_tlb();
  mmu_.restore(*s.tlb);
  position_ = s.position;
  // Between two iterations the next report of this place continues the same REP.
  linear_ = engine_.segment_base(kCs) + engine_.eip();
  code_page_ = kNoPage;
  pending_ = nullptr;
  blocks_.clear();
  stale_blocks_.clear();
  if (retranslating_) finish_retranslation();
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
