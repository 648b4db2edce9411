#include "tools/export/profile_exporters.h"

namespace citcat::tools {

void BlockTotals::run(const Execution& execution, const Context& context) {
  const Position first = execution.first();
  settle(first.instruction);
  const std::uint32_t count = execution.block().count();
  // All but the last have another one after them.
  totals_.instructions += count - 1;
  last_ = first.instruction + count - 1;
  is_pending_ = true;
  if (first.iteration != 0) {
    totals_.further += execution.iterations();
    return;
  }
  totals_.further += execution.iterations() - 1;
  totals_.fetched += count;
  if (context.level() == Context::kUserLevel) totals_.user += count;
}

void BlockTotals::event(const MachineEvent& event) {
  // Where an interrupt is taken within a REP, that does not complete.
  if (event.kind == MachineEvent::Kind::delivered &&
      event.delivery.kind != DeliveredEvent::Kind::software) {
    settle(event.position.instruction);
  }
}

CallPath ProfileTool::began(AddressSpaceId space) {
  const bool system = space == CallStacks::kKernel;
  return tree_.enter(CallTree::kRoot, system ? CallTree::Kind::system : CallTree::Kind::process,
                     system ? 0 : space);
}

CallPath ProfileTool::handles(CallPath under, const KernelEntry& entry) {
  switch (entry.kind) {
    case KernelEntry::Kind::interrupt:
      return tree_.enter(under, CallTree::Kind::interrupt, entry.vector);
    case KernelEntry::Kind::exception:
      return tree_.enter(under, CallTree::Kind::exception, entry.vector);
    case KernelEntry::Kind::call:
      return tree_.enter(under, CallTree::Kind::call, 0);
  }
  return under;
}

CallPath ProfileTool::entered(CallPath under, ProcedureNumber procedure, bool is_base) {
  return tree_.enter_procedure(under, procedure, !is_base);
}

void ProfileTool::report(Report& out) const {
  auto& self = const_cast<ProfileTool&>(*this);
  if (!written_) {
    self.totals_.end();
    self.write(CallPaths(tree_, procedures_, names_));
    self.file_.finish();
  }
  self.written_ = true;
  totals_.totals().report(out, false);
}

}  // namespace citcat::tools
