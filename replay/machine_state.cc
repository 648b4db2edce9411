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
  return s;
}

void Machine::restore(const Snapshot& s, const MemoryImage& image) {
  discard_in_flight();
  memory_.restore(image, s.pages);
  set_registers(s.cpu);
  if (s.interrupts_inhibited) engine_.step_once();
  engine_.flush_code();
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
  shut_down_ = s.shut_down;
  halted_ = s.cpu.halted;
}

}  // namespace citcat
