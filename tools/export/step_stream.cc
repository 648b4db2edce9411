#include "tools/export/step_stream.h"

#include "formats/io/error.h"
#include "replay/machine/code_place.h"
#include "replay/machine/machine.h"

namespace citcat::tools {
namespace {

/// Pieces of one access lie one behind the other, in two pages.
bool continues(const StepAccess& access, const Reference& r) {
  return access.write == r.write && r.linear.offset_in_page() == 0 && r.linear != LinearAddr{0} &&
         access.linear.value + access.size == r.linear.value;
}

/// Where the run would have gone on behind `code`: the delivery has offsets in the code segment.
LinearAddr going_on(const StaticInstruction& code, const DeliveredEvent& delivery,
                    const Engine& engine) {
  if (code_bits(engine) == 64) return LinearAddr{delivery.eip};
  const std::uint32_t base = code.linear.low32() - static_cast<std::uint32_t>(code.offset);
  return linear32(base, static_cast<std::uint32_t>(delivery.eip));
}

LinearAddr stack_pointer(const Engine& engine) {
  if (code_bits(engine) == 64) return LinearAddr{engine.wide().gpr(kEsp)};
  return linear32(engine.segment_base(kSs), engine.gpr(kEsp));
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

void StepTotals::report(Report& out) const {
  out.value("instructions", "instructions completed", instructions);
  out.value("fetched", "instructions fetched", fetched);
  out.value("not_fetched", "further iterations of REP", further);
  out.value("user", "fetched at level 3", user);
  out.value("kernel", "fetched at another level", fetched - user);
  out.value("reads", "reads", reads);
  out.value("writes", "writes", writes);
}

void StepTool::run(void* mine, const Execution& execution, const Context& context) {
  context_ = &context;
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
  const std::uint64_t number = execution.first().instruction + instruction;
  if (is_pending_) settle(code.linear, number);
  const std::uint32_t moved = iteration * execution.step();
  accesses_.clear();
  for (const Reference& r : references) {
    if (r.kind != AccessKind::data) continue;
    Reference here = r;
    here.linear = further(r.linear, moved);
    if (!accesses_.empty() && continues(accesses_.back(), here)) {
      accesses_.back().size += r.size;
    } else {
      const auto physical = static_cast<std::uint32_t>(r.physical.value) + moved;
      accesses_.push_back({here.linear, PhysAddr{physical}, r.size, r.write});
    }
  }
  pending_ = Step{};
  pending_.code = &code;
  pending_.position = {number, execution.first().iteration + iteration};
  pending_.level = context.level();
  pending_.address_space = context.address_space();
  pending_.further = pending_.position.iteration != 0;
  if (!execution.does_nothing()) {
    pending_.address_count = code.info.ea_count;
    for (std::uint8_t a = 0; a < pending_.address_count; ++a) {
      pending_.addresses[a] = further(execution.address(instruction, a), moved);
    }
  }
  is_pending_ = true;
}

/// The pending step is followed by `next`, the start of instruction `instruction` of the run.
void StepTool::settle(LinearAddr next, std::uint64_t instruction) {
  is_pending_ = false;
  pending_.next = next;
  pending_.accesses = accesses_;
  pending_.completes = instruction > pending_.position.instruction;
  totals_.add(pending_);
  step(pending_);
  tell_events();
}

void StepTool::tell_events() {
  for (const StepEvent& h : events_) happened(h);
  events_.clear();
}

void StepTool::event(const MachineEvent& event, const Context& context) {
  context_ = &context;
  // Only a delivery says where the run would have gone on. A step before another event is settled
  // by the instruction behind that.
  const bool tells = event.kind == MachineEvent::Kind::delivered &&
                     event.delivery.kind != DeliveredEvent::Kind::software;
  if (is_pending_ && tells) {
    settle(going_on(*pending_.code, event.delivery, context.machine().engine()),
           event.position.instruction);
  }
  const Engine& engine = context.machine().engine();
  events_.push_back(
      {event, context.level(), context.address_space(), engine.gpr(kEax), stack_pointer(engine)});
  if (!is_pending_) tell_events();
}

void StepTool::follow(Tool&&) { throw InternalError("parts of a stream are put together"); }

void StepTool::save(ByteWriter&) const {}

void StepTool::load(ByteReader&) {}

void StepTool::report(Report& out) const {
  // What is written is no part of what the tool holds, and is written once.
  auto& self = const_cast<StepTool&>(*this);
  self.context_ = nullptr;
  if (is_pending_) self.settle(pending_.behind(), pending_.position.instruction + 1);
  if (!ended_) self.end();
  self.ended_ = true;
  totals_.report(out);
  report_more(out);
}

}  // namespace citcat::tools
