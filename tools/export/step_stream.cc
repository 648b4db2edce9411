#include "tools/export/step_stream.h"

#include <utility>

#include "formats/io/error.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {
namespace {

/// Pieces of one access lie one after the other, in two pages.
bool continues(const StepAccess& access, const Reference& r) {
  return access.write == r.write && r.linear.offset_in_page() == 0 && r.linear != LinearAddr{0} &&
         access.linear.value + access.size == r.linear.value;
}

/// Where the run would have gone on after `code`: the delivery has offsets in the code segment.
LinearAddr going_on(const StaticInstruction& code, const ToldEvent& event) {
  const DeliveredEvent& delivery = event.event.event.delivery;
  if (event.bits64) return LinearAddr{delivery.eip};
  const std::uint32_t base = code.linear.low32() - static_cast<std::uint32_t>(code.offset);
  return linear32(base, static_cast<std::uint32_t>(delivery.eip));
}

LinearAddr stack_pointer(const Engine& engine) {
  if (code_bits(engine) == 64) return LinearAddr{engine.wide().gpr(kEsp)};
  return linear32(engine.segment_base(kSs), engine.gpr(kEsp));
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

void StepTotals::add(const Step& step) {
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

void StepTool::run(void* mine, const Execution& execution, const Context& context) {
  const auto& block = *static_cast<const StaticBlock*>(mine);
  const std::span<const Reference> references = execution.references();
  std::size_t at = 0;
  for (std::uint32_t i = 0; i < block.count(); ++i) {
    std::size_t end = at;
    while (end < references.size() && references[end].instruction == i) ++end;
    for (std::uint32_t k = 0; k < execution.iterations(); ++k) {
      add(execution, i, k, references.subspan(at, end - at), context);
    }
    at = end;
  }
}

void StepTool::add(const Execution& execution, std::uint32_t instruction, std::uint32_t iteration,
                   std::span<const Reference> references, const Context& context) {
  const StaticInstruction& code = execution.block()[instruction];
  const std::uint32_t moved = iteration * execution.step();
  scratch_.clear();
  for (const Reference& r : references) {
    if (r.kind != AccessKind::data) continue;
    Reference here = r;
    here.linear = further(r.linear, moved);
    if (!scratch_.empty() && continues(scratch_.back(), here)) {
      scratch_.back().size += r.size;
    } else {
      scratch_.push_back({here.linear, r.physical.plus32(moved), r.size, r.write});
    }
  }
  ToldStep step;
  step.code = &code;
  step.position = {execution.first().instruction + instruction,
                   execution.first().iteration + iteration};
  step.level = context.level();
  step.address_space = context.address_space();
  step.isolated_tables = context.has_isolated_tables();
  if (!execution.does_nothing()) {
    step.address_count = code.info.ea_count;
    for (std::uint8_t a = 0; a < step.address_count; ++a) {
      step.addresses[a] = further(execution.address(instruction, a), moved);
    }
  }
  step.facts = facts(execution, context);
  told_step(step, scratch_);
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

void StepTool::told_step(const ToldStep& step, std::span<const StepAccess> accesses) {
  if (file_.is_kept()) {
    keep(step);
    if (!writes_) return log_->step(step, accesses);
  }
  if (is_pending_) settle(step.code->linear, step.position.instruction);
  if (!asked_for_.empty() && !asks_for_interrupt(*step.code)) {
    // The instruction that asked for it is not told.
    events_ = std::exchange(asked_for_, {});
    tell_events();
  }
  static_cast<ToldStep&>(pending_) = step;
  isolated_ = isolated_ || step.isolated_tables;
  if (isolated_) pending_.address_space = Context::without_user_tables(step.address_space);
  pending_.further = step.position.iteration != 0;
  accesses_.assign(accesses.begin(), accesses.end());
  is_pending_ = true;
  if (!asked_for_.empty()) events_ = std::exchange(asked_for_, {});
}

/// The pending step is followed by `next`, the start of instruction `instruction` of the run.
void StepTool::settle(LinearAddr next, std::uint64_t instruction, bool is_last) {
  is_pending_ = false;
  pending_.next = next;
  pending_.accesses = accesses_;
  pending_.completes = instruction > pending_.position.instruction;
  pending_.is_last = is_last;
  totals_.add(pending_);
  step(pending_);
  tell_events();
}

void StepTool::happened(const StepEvent& event, const std::string& /*facts*/) { happened(event); }

void StepTool::tell_events() {
  if (events_.empty()) return;
  for (const ToldEvent& h : std::exchange(events_, {})) happened(h.event, h.facts);
}

void StepTool::event(const MachineEvent& event, const Context& context) {
  const Engine& engine = context.machine().engine();
  ToldEvent told;
  told.event = {event, context.level(), context.address_space(), engine.gpr(kEax),
                stack_pointer(engine)};
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
    settle(going_on(*pending_.code, event), event.event.event.position.instruction);
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
  if (!file_.begins()) return;
  read_.push_back(std::move(log_));
  read_.back()->tell(*this);
}

void StepTool::follow(Tool&& later) {
  read_.push_back(std::move(static_cast<StepTool&>(later).log_));
  read_.back()->tell(*this);
}

void StepTool::report(Report& out) const {
  auto& self = const_cast<StepTool&>(*this);
  if (is_pending_) self.settle(pending_.behind(), pending_.position.instruction + 1, true);
  self.events_ = std::exchange(self.asked_for_, {});
  self.tell_events();
  if (!ended_) self.end();
  self.ended_ = true;
  totals_.report(out, wants().references);
  report_more(out);
}

}  // namespace citcat::tools
