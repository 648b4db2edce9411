// Jumps and calls that the engine makes otherwise than the processor: what it looks at too late or
// not at all, and what it stores before it refuses (Intel SDM vol. 2, CALL and JMP; returns are in
// machine_returns.cc).

#include <array>
#include <cstring>
#include <span>

#include "replay/machine/machine_descriptor.h"

namespace citcat {

namespace {

constexpr std::uint32_t kCf = 0x001, kPf = 0x004, kZf = 0x040, kSf = 0x080, kOf = 0x800;

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
bool Machine::takes_branch() const {
  const DecodedInstruction& info = *flight_.info;
  const std::uint32_t flags = cpu_.engine.eflags();
  if (info.kind == InstructionClass::jcc) return condition_holds(info.opcode, flags);
  if (info.kind != InstructionClass::loop) return true;
  const std::uint32_t mask = info.address_bits == 32 ? 0xffffffff : 0xffff;
  constexpr std::uint8_t kLoopne = 0xe0, kLoope = 0xe1, kJcxz = 0xe3;
  if (info.opcode == kJcxz) return (cpu_.engine.gpr(kEcx) & mask) == 0;
  if (((cpu_.engine.gpr(kEcx) - 1) & mask) == 0) return false;
  const bool zero = (flags & kZf) != 0;
  return info.opcode == kLoopne ? !zero : info.opcode != kLoope || zero;
}

/// Where the near transfer in flight goes, if it goes anywhere.
std::uint32_t Machine::branch_target() {
  const DecodedInstruction& info = *flight_.info;
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
  read_operand(cpu_.linear_of(operand), std::span(bytes).first(wide ? 4 : 2));
  return static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8 | bytes[2] << 16) |
         std::uint32_t{bytes[3]} << 24;
}

/// A near transfer to beyond the limit of the code segment is refused at the instruction that makes
/// it, with nothing pushed or popped. The engine gets there first.
void Machine::check_branch_target() {
  if (!cpu_.traits.has_limits) return;
  const std::uint32_t limit = cpu_.engine.segment_limit(kCs);
  switch (flight_.info->kind) {
    case InstructionClass::far_return:
    case InstructionClass::iret:
      check_return_target();
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
  if (limit == 0xffffffff) return;
  if (branch_target() > limit && takes_branch()) throw CpuException{kProtection, 0u, 0};
}

/// A descriptor whose read has been told already; false where its table has none.
bool Machine::look_up(std::uint16_t selector, Descriptor& out) {
  const auto type_byte = descriptor_type_byte(selector);
  if (!type_byte) return false;
  std::array<std::uint8_t, 8> bytes{};
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    const LinearAddr at{*type_byte - 5 + i};
    bytes[i] = *cpu_.memory.host(cpu_.mmu.translate(at, Access::read, false));
  }
  out.selector = selector;
  out.linear = *type_byte - 5;
  std::memcpy(&out.low, bytes.data(), 4);
  std::memcpy(&out.high, &bytes[4], 4);
  return true;
}

/// ENTER refuses where its frame has no room, though it does not touch what it leaves free (SDM
/// vol. 2, ENTER: the final value of the stack pointer).
void Machine::check_final_stack() {
  const bool wide = cpu_.stack32();
  const std::uint32_t esp =
      cpu_.engine.gpr(kEsp) + static_cast<std::uint32_t>(flight_.info->stack_delta);
  MemoryOperand operand;
  operand.segment = kSs;
  DataAccess a;
  a.offset = wide ? esp : esp & 0xffff;
  a.linear = cpu_.engine.segment_base(kSs) + a.offset;
  a.size = 1;
  a.write = true;
  frame_before_ = cpu_.engine.gpr(kEbp);
  check_segment(a, operand, true);
  if (!cpu_.mmu.peek(LinearAddr{a.linear}, Access::write, cpu_.user_mode())) {
    cpu_.mmu.translate(LinearAddr{a.linear}, Access::write, cpu_.user_mode());
  }
}

/// ENTER with 16-bit operands changes BP alone. The engine goes by the size of the stack.
void Machine::keep_upper_frame_pointer() {
  cpu_.engine.set_gpr(kEbp, (frame_before_ & 0xffff0000) | (cpu_.engine.gpr(kEbp) & 0xffff));
}

/// JMP and CALL to a code segment. The engine names the wrong selector where the offset lies beyond
/// its limit, after it has pushed the return address.
void Machine::transfer_to_code(const Descriptor& code, std::uint32_t offset, bool call) {
  const std::uint32_t error = code.selector & 0xfffcu;
  const std::uint32_t cpl = cpu_.engine.hflags() & kHfCpl;
  const bool allowed =
      code.conforming() ? code.dpl() <= cpl : code.dpl() == cpl && (code.selector & 3u) <= cpl;
  if (!code.is_code() || !allowed) throw CpuException{kProtection, error, 0};
  if (!code.present()) throw CpuException{kNotPresent, error, 0};
  const Segment segment = code.segment(static_cast<std::uint16_t>(error | cpl));
  const std::uint32_t width = flight_.info->operand_bytes;
  const std::uint32_t target = width == 2 ? offset & 0xffff : offset;
  if (target > segment.limit) throw CpuException{kProtection, 0u, 0};
  if (call) push_return_address(width);
  mark_accessed(code);
  cpu_.engine.set_segment(kCs, segment);
  cpu_.engine.set_eip(target);
}

/// Of a far CALL. Both places are looked at before anything is stored: a fault leaves neither.
void Machine::push_return_address(std::uint32_t width) {
  StackTop top{cpu_.engine.segment(kSs), cpu_.engine.gpr(kEsp), cpu_.user_mode(), false};
  page_in_pushes(top, width, 2);
  push(top, cpu_.engine.segment_selector(kCs), width, 0);
  push(top, cpu_.engine.eip() + flight_.info->length, width, 0);
  cpu_.engine.set_gpr(kEsp, top.esp);
}

/// Far JMP and CALL in real and virtual-8086 mode.
void Machine::transfer_in_real_mode(std::uint16_t selector, std::uint32_t offset, bool call) {
  const std::uint32_t width = flight_.info->operand_bytes;
  if (offset > cpu_.engine.segment_limit(kCs)) throw CpuException{kProtection, 0u, 0};
  if (call) push_return_address(width);
  cpu_.engine.set_segment(kCs, real_mode_segment(cpu_.engine.segment(kCs), selector));
  cpu_.engine.set_eip(offset);
}

/// Throws what `count` pushes would.
void Machine::page_in_pushes(StackTop top, std::uint32_t width, unsigned count) {
  for (; count != 0; --count) {
    const std::uint32_t at = next_push(top, width, 0);
    const std::uint32_t linear = top.segment.base + at;
    cpu_.mmu.translate(LinearAddr{linear}, Access::write, top.user);
    cpu_.mmu.translate(LinearAddr{linear + width - 1}, Access::write, top.user);
  }
}

}  // namespace citcat
