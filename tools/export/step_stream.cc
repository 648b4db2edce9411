#include "tools/export/step_stream.h"

#include <utility>

#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {
namespace {

/// Pieces of one access lie one after the other, in two pages.
bool continues(const StepAccess& access, const StepAccess& next) {
  return next.linear.offset_in_page() == 0 && access.write == next.write &&
         next.linear != LinearAddr{0} && access.linear.value + access.size == next.linear.value;
}

/// Where the run would have gone on after `code`: the delivery has offsets in the code segment.
LinearAddr going_on(const StaticInstruction& code, const ToldEvent& event) {
  const DeliveredEvent& delivery = event.event.event.delivery;
  if (event.bits64) return LinearAddr{delivery.eip};
  const std::uint32_t base = code.linear.low32() - static_cast<std::uint32_t>(code.offset);
  return linear32(base, static_cast<std::uint32_t>(delivery.eip));
}

bool is_delivery(const ToldEvent& event) {
  return event.event.event.kind == MachineEvent::Kind::delivered;
}

bool by_software(const ToldEvent& event) {
  return is_delivery(event) && event.event.event.delivery.kind == DeliveredEvent::Kind::software;
}

bool asks_for_interrupt(const StaticInstruction& code) {
  const InstructionClass kind = code.info.kind;
  return kind == InstructionClass::int_n || kind == InstructionClass::int3 ||
         kind == InstructionClass::into || kind == InstructionClass::icebp;
}

}  // namespace

inline void StepTotals::add(const Step& step) {
  if (step.completes) ++instructions;
  if (step.further) {
    ++further;
  } else {
    ++fetched;
    if (step.level == 3) ++user;
  }
  for (const StepAccess& access : step.accesses) ++(access.write ? writes : reads);
}

void StepTotals::add(const StepTotals& more) {
  instructions += more.instructions;
  fetched += more.fetched;
  further += more.further;
  reads += more.reads;
  writes += more.writes;
  user += more.user;
  left_out += more.left_out;
}

void StepTotals::report(Report& out, bool accesses) const {
  out.value("instructions", "instructions completed", instructions);
  out.value("fetched", "instructions fetched", fetched);
  out.value("not_fetched", "further iterations of REP", further);
  out.value("user", "fetched at level 3", user);
  out.value("kernel", "fetched at another level", fetched - user);
  if (!accesses) return;
  out.value("reads", "reads", reads);
  out.value("writes", "writes", writes);
}

StepTool::StepTool(ExportFile file) : file_(std::move(file)) {
  file_.keep(file_.spool() != nullptr);
}

void* StepTool::code(const StaticBlock& block) {
  std::vector<StepCode>& kept = code_.emplace_back();
  kept.reserve(block.count());
  for (const StaticInstruction& each : block.instructions()) kept.emplace_back(each, numbers_++);
  return &kept;
}

void StepTool::run(void* mine, const Execution& execution, const Context& context) {
  const auto& code = *static_cast<const std::vector<StepCode>*>(mine);
  ToldStep step;
  step.code = code.data();
  step.position = execution.first();
  step.level = context.level();
  step.address_space = context.address_space();
  step.isolated_tables = context.has_isolated_tables();
  if (execution.iterations() != 1 || file_.is_kept() || has_facts()) [[unlikely]]
    return run_each(code, execution, context, step);
  begin(step);
  const Reference* r = execution.references().data();
  const Reference* const end = r + execution.references().size();
  r = gather(r, end, 0, 0);
  // What follows in a block differs little from what comes before it.
  for (std::uint32_t i = 1; i < code.size(); ++i) {
    settle(code[i].linear, step.position.instruction + i);
    pending_.code = &code[i];
    pending_.position = {step.position.instruction + i, 0};
    pending_.further = false;
    is_pending_ = true;
    r = gather(r, end, i, 0);
  }
}

/// The same of whatever can be executed: iterations, in parts of a run too, with facts.
void StepTool::run_each(const std::vector<StepCode>& code, const Execution& execution,
                        const Context& context, ToldStep step) {
  const Reference* r = execution.references().data();
  const Reference* const end = r + execution.references().size();
  std::string facts;
  for (std::uint32_t i = 0; i < code.size(); ++i) {
    step.code = &code[i];
    const Reference* behind = r;
    for (std::uint32_t k = 0; k < execution.iterations(); ++k) {
      step.position = {execution.first().instruction + i, execution.first().iteration + k};
      if (has_facts()) step.facts = facts = this->facts(execution, context);
      const bool logged = is_logged(step);
      if (!logged) begin(step);
      behind = gather(r, end, i, k * execution.step());
      if (logged) log_->step(step, accesses_);
    }
    r = behind;
  }
}

/// Collects what an iteration of the instruction with that number in its block accessed, which
/// begins at `r`, and returns where that ends.
inline const Reference* StepTool::gather(const Reference* r, const Reference* end,
                                         std::uint32_t instruction, std::uint32_t moved) {
  accesses_.clear();
  for (; r != end && r->instruction == instruction; ++r) {
    if (r->kind != AccessKind::data) continue;
    const StepAccess here{further(r->linear, moved), r->physical.plus32(moved), r->size, r->write};
    if (!accesses_.empty() && continues(accesses_.back(), here)) {
      accesses_.back().size += here.size;
    } else {
      accesses_.push_back(here);
    }
  }
  return r;
}

/// A part of the run writes what stands alone; what it needs of its neighbours is kept, as is all
/// of other formats.
void StepTool::keep(const ToldStep& step) {
  if (!log_) log_ = std::make_unique<StepLog>(file_.spool());
  if (!stands_alone() || writes_) return;
  writes_ = true;
  first_ = step.code->linear;
  first_instruction_ = step.position.instruction;
}

/// It is kept for the process that joins the parts, which passes it to the tool.
inline bool StepTool::is_logged(const ToldStep& step) {
  if (!file_.is_kept()) [[likely]]
    return false;
  keep(step);
  return !writes_;
}

void StepTool::told_step(const ToldStep& step, std::span<const StepAccess> accesses) {
  if (is_logged(step)) return log_->step(step, accesses);
  begin(step);
  accesses_.assign(accesses.begin(), accesses.end());
}

/// Where it goes on, and what it accessed, is still to come.
inline void StepTool::begin(const ToldStep& step) {
  if (is_pending_) settle(step.code->linear, step.position.instruction);
  if (!asked_for_.empty() && !asks_for_interrupt(*step.code->instruction)) [[unlikely]] {
    // The instruction that asked for it is not told.
    events_ = std::exchange(asked_for_, {});
    tell_events();
  }
  static_cast<ToldStep&>(pending_) = step;
  if (!step.facts.empty()) pending_.facts = facts_ = step.facts;
  isolated_ = isolated_ || step.isolated_tables;
  if (isolated_) pending_.address_space = Context::without_user_tables(step.address_space);
  pending_.further = step.position.iteration != 0;
  is_pending_ = true;
  if (!asked_for_.empty()) [[unlikely]]
    events_ = std::exchange(asked_for_, {});
}

/// The pending step is followed by `next`, the start of instruction `instruction` of the run.
inline void StepTool::settle(LinearAddr next, std::uint64_t instruction, bool is_last) {
  is_pending_ = false;
  pending_.next = next;
  pending_.accesses = accesses_;
  pending_.completes = instruction > pending_.position.instruction;
  pending_.is_last = is_last;
  totals_.add(pending_);
  step(pending_);
  if (!events_.empty()) tell_events();
}

void StepTool::happened(const StepEvent& event, const std::string& /*facts*/) { happened(event); }

void StepTool::tell_events() {
  for (const ToldEvent& h : std::exchange(events_, {})) happened(h.event, h.facts);
}

void StepTool::event(const MachineEvent& event, const Context& context) {
  const Engine& engine = context.machine().engine();
  ToldEvent told;
  told.event = {event, context.level(), context.address_space(), engine.gpr(kEax),
                stack_address(engine)};
  told.bits64 = code_bits(engine) == 64;
  told.facts = facts(event, context);
  told_event(told);
}

void StepTool::told_event(const ToldEvent& event) {
  if (file_.is_kept() && !writes_) {
    if (!log_) log_ = std::make_unique<StepLog>(file_.spool());
    return log_->event(event);
  }
  // Told before the instruction, which is next.
  if (by_software(event)) {
    asked_for_.push_back(event);
    return;
  }
  // Only a delivery says where the run would have gone on. A step before another event is settled
  // by the instruction after that.
  if (is_pending_ && is_delivery(event)) {
    settle(going_on(*pending_.code->instruction, event), event.event.event.position.instruction);
  }
  events_.push_back(event);
  if (!is_pending_) tell_events();
}

void StepTool::told_written(LinearAddr first, std::uint64_t instruction, const StepTotals& totals) {
  if (is_pending_) settle(first, instruction);
  totals_.add(totals);
}

/// Keeps the text of a part, its last step and the events after that.
void StepTool::keep_text() {
  if (!writes_) return;
  writes_ = false;
  log_->written(first_, first_instruction_, totals_, file_.take_pieces());
  if (is_pending_) log_->step(pending_, accesses_);
  for (const ToldEvent& event : events_) log_->event(event);
  for (const ToldEvent& event : asked_for_) log_->event(event);
}

void StepTool::save(ByteWriter& out) const {
  // What is written is no part of what the tool holds, and is written once.
  auto& self = const_cast<StepTool&>(*this);
  if (!self.log_) self.log_ = std::make_unique<StepLog>(file_.spool());
  self.keep_text();
  self.log_->save(out);
}

void StepTool::load(ByteReader& in) {
  log_ = std::make_unique<StepLog>(file_.spool());
  log_->load(in);
  file_.keep(false);
  if (file_.begins()) tell(std::move(log_));
}

void StepTool::follow(Tool&& later) { tell(std::move(static_cast<StepTool&>(later).log_)); }

void StepTool::tell(std::unique_ptr<StepLog> log) {
  read_.push_back(std::move(log));
  numbers_ = read_.back()->tell(*this, numbers_);
}

void StepTool::report(Report& out) const {
  auto& self = const_cast<StepTool&>(*this);
  if (is_pending_) self.settle(pending_.code->behind, pending_.position.instruction + 1, true);
  self.events_ = std::exchange(self.asked_for_, {});
  self.tell_events();
  if (!ended_) self.end();
  self.ended_ = true;
  totals_.report(out, wants().references);
  report_more(out);
}

}  // namespace citcat::tools
