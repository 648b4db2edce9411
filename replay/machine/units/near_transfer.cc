#include "replay/machine/units/near_transfer.h"

#include <array>
#include <span>

#include "replay/machine/units/far_return.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

/// SDM vol. 1, appendix B: the condition in the low four bits of an opcode.
bool condition_holds(unsigned condition, std::uint32_t flags) {
  const auto set = [&](std::uint32_t flag) { return (flags & flag) != 0; };
  const bool less = set(kSf) != set(kOf);
  bool holds = false;
  switch (condition >> 1 & 7) {
    case 0:
      holds = set(kOf);
      break;
    case 1:
      holds = set(kCf);
      break;
    case 2:
      holds = set(kZf);
      break;
    case 3:
      holds = set(kCf) || set(kZf);
      break;
    case 4:
      holds = set(kSf);
      break;
    case 5:
      holds = set(kPf);
      break;
    case 6:
      holds = less;
      break;
    default:
      holds = less || set(kZf);
      break;
  }
  return holds != ((condition & 1) != 0);
}

}  // namespace

/// LOOP, LOOPE, LOOPNE, JCXZ and conditional jumps: whether the one in flight will jump.
bool NearTransfer::takes_branch() const {
  const DecodedInstruction& info = *flight_.info;
  const std::uint32_t flags = cpu_.engine.eflags();
  if (info.kind == InstructionClass::jcc) return condition_holds(info.opcode, flags);
  if (info.kind != InstructionClass::loop) return true;
  if (info.is(Operation::jcxz)) return cpu_.count_of(info) == 0;
  if (cpu_.count_of(info) == 1) return false;
  const bool zero = (flags & kZf) != 0;
  return info.is(Operation::loopne) ? !zero : !info.is(Operation::loope) || zero;
}

/// Where the near transfer in flight goes, if it goes anywhere.
std::uint64_t NearTransfer::branch_target() {
  const DecodedInstruction& info = *flight_.info;
  if (cpu_.bits64()) return wide_branch_target();
  const bool wide = ((cpu_.engine.hflags() & kHfCs32) != 0) != info.operand_prefix;
  const std::uint32_t mask = wide ? 0xffffffff : 0xffff;
  if (info.kind != InstructionClass::ret && !info.indirect) {
    return (cpu_.engine.eip() + info.length +
            static_cast<std::uint32_t>(info.target_displacement)) &
           mask;
  }
  if (info.register_form) return cpu_.engine.gpr(info.rm_field) & mask;
  const MemoryOperand& operand = info.operands[0];
  std::array<std::uint8_t, 4> bytes{};
  operands_.read(cpu_.linear_of(operand), std::span(bytes).first(wide ? 4 : 2));
  return static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16) |
         std::uint32_t{bytes[3]} << 24;
}

std::uint64_t NearTransfer::wide_branch_target() {
  const DecodedInstruction& info = *flight_.info;
  if (info.kind != InstructionClass::ret && !info.indirect) {
    return cpu_.linear.value + info.length +
           static_cast<std::uint64_t>(std::int64_t{info.target_displacement});
  }
  if (info.register_form) return cpu_.engine.wide().gpr(info.rm_field);
  return operands_.read_wide_value(cpu_.linear_of(info.operands[0]), 8);
}

void NearTransfer::check_target() {
  if (!cpu_.traits.has_limits) return;
  const std::uint32_t limit = cpu_.engine.segment_limit(kCs);
  switch (flight_.info->kind) {
    case InstructionClass::far_return:
    case InstructionClass::iret:
      returns_.check_return_target();
      return;
    case InstructionClass::jcc:
    case InstructionClass::loop:
    case InstructionClass::jump:
    case InstructionClass::call:
    case InstructionClass::ret:
      break;
    default:
      return;
  }
  if (cpu_.bits64()) {
    if (CpuContext::is_canonical(branch_target()) || !takes_branch()) return;
    throw CpuException{kProtection, 0u, 0};
  }
  if (limit == 0xffffffff) return;
  if (branch_target() > limit && takes_branch()) throw CpuException{kProtection, 0u, 0};
}

void NearTransfer::check_final_stack() {
  const std::uint64_t esp = cpu_.engine.wide().gpr(kEsp) +
                            static_cast<std::uint64_t>(std::int64_t{flight_.info->stack_delta});
  const AddressWidth width = cpu_.bits64() ? AddressWidth::bits64 : AddressWidth::stack;
  MemoryOperand operand;
  operand.segment = kSs;
  DataAccess a;
  a.offset = wrap_offset(esp, width, cpu_.stack32());
  a.linear = linear_at(cpu_.base_of(kSs), a.offset, width);
  a.size = 1;
  a.write = true;
  frame_before_ = cpu_.engine.wide().gpr(kEbp);
  operands_.check_segment(a, operand, true);
  if (!cpu_.mmu.look_up(a.linear, Access::write, cpu_.program(), Lookup::free)) {
    cpu_.mmu.translate(a.linear, Access::write, cpu_.program());
  }
}

void NearTransfer::keep_upper_frame_pointer() {
  constexpr std::uint64_t kLow = 0xffff;
  cpu_.engine.wide().set_gpr(kEbp, (frame_before_ & ~kLow) | (cpu_.engine.wide().gpr(kEbp) & kLow));
}

void NearTransfer::return_near() {
  const std::uint64_t target = branch_target();
  const bool beyond =
      cpu_.bits64() ? !CpuContext::is_canonical(target) : target > cpu_.engine.segment_limit(kCs);
  if (beyond) throw CpuException{kProtection, 0u, 0};
  const std::uint32_t flags = cpu_.engine.system_flags();
  retirement_.report_completed();
  cpu_.move_stack_pointer(flight_.info->stack_delta);
  cpu_.set_ip(target);
  retirement_.finish_mode_switch(flags);
}

}  // namespace citcat
