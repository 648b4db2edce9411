#include "tools/analyses/branch_follower.h"

namespace citcat::tools {

bool is_followed(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
    case InstructionClass::jump:
    case InstructionClass::call:
    case InstructionClass::ret:
      return true;
    default:
      return false;
  }
}

BranchFollower::End BranchFollower::end_of(const StaticBlock& block) {
  End end;
  end.first = block.front().linear;
  const StaticInstruction& last = block.back();
  end.branches = is_followed(last.info.kind);
  if (!end.branches) return end;
  end.branch.kind = last.info.kind;
  end.branch.indirect = last.info.indirect || last.info.kind == InstructionClass::ret;
  end.branch.address = last.linear;
  end.branch.next = last.behind();
  const std::int64_t distance = last.info.target_displacement;
  end.branch.target =
      last.info.bits64
          ? LinearAddr{end.branch.next.value + static_cast<std::uint64_t>(distance)}
          : end.branch.next.plus32(static_cast<std::uint32_t>(last.info.target_displacement));
  return end;
}

LinearAddr load_address(ByteReader& in, const char* what) { return LinearAddr{in.varint(what)}; }

void BranchFollower::save(ByteWriter& out) const {
  out.u8(static_cast<std::uint8_t>((first_ ? 1 : 0) | (pending_ ? 2 : 0) |
                                   (branch_.indirect ? 4 : 0) | (delivered_first_ ? 8 : 0)));
  save_address(out, first_.value_or(LinearAddr{}));
  out.u8(static_cast<std::uint8_t>(branch_.kind));
  for (const LinearAddr a : {branch_.address, branch_.next, branch_.target}) save_address(out, a);
}

void BranchFollower::load(ByteReader& in) {
  const std::uint8_t flags = in.u8("what is known of branches");
  const LinearAddr first = load_address(in, "first address");
  if ((flags & 1) != 0) first_ = first;
  pending_ = (flags & 2) != 0;
  branch_.indirect = (flags & 4) != 0;
  delivered_first_ = (flags & 8) != 0;
  branch_.kind = static_cast<InstructionClass>(in.u8("class of a branch"));
  if (!is_followed(branch_.kind)) in.fail("expected the class of a branch");
  branch_.address = load_address(in, "branch");
  branch_.next = load_address(in, "after a branch");
  branch_.target = load_address(in, "target of a branch");
}

}  // namespace citcat::tools
