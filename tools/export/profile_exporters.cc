#include "tools/export/profile_exporters.h"

namespace citcat::tools {

void* ProfileTool::code(const StaticBlock& block) {
  return &pieces_.emplace_back(Piece{StepTool::code(block), follower_.code(block)});
}

void ProfileTool::run(void* mine, const Execution& execution, const Context& context) {
  const Piece& piece = *static_cast<const Piece*>(mine);
  StepTool::run(piece.stepped, execution, context);
  follower_.run(piece.followed, execution, context);
}

void ProfileTool::event(const MachineEvent& event, const Context& context) {
  StepTool::event(event, context);
  follower_.event(event, context);
}

CallPath ProfileTool::began(std::uint32_t space) {
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

void ProfileTool::end() {
  write(CallPaths(tree_, procedures_, names_));
  file().finish();
}

}  // namespace citcat::tools
