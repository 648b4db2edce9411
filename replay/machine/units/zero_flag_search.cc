#include "replay/machine/units/zero_flag_search.h"

#include <algorithm>
#include <array>

#include "replay/machine/units/known_bytes.h"
#include "x86/flag_effects.h"

namespace citcat {

bool ZeroFlagSearch::may_ask_behind(const DecodedInstruction& info) {
  const std::uint64_t* const gprs = cpu_.engine.gprs();
  first_stack_pointer_ = gprs[kEsp];
  return may_ask({cpu_.onward(cpu_.linear, info.length), gprs[kEsp], gprs[kEbp], {}});
}

bool ZeroFlagSearch::may_ask(Way way) {
  while (left_-- > 0) {
    std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
    const std::size_t known = known_bytes(cpu_, way.at, Access::execute, bytes);
    const DecodedInstruction next =
        decode_instruction({bytes.data(), known}, cpu_.code_mode(), cpu_.model);
    if (next.state != DecodeState::ok || next.row == nullptr) return false;
    if ((next.row->flags.read & kZf) != 0) return true;
    // A shift by CL, which may be 0, leaves the flags alone.
    if ((flag_effect_of(next, 0).written & kZf) != 0) return false;
    // An interrupt alone goes on after it, and pushes the flags for the bus to see.
    if (next.is(Operation::hlt)) return false;
    way.at = cpu_.onward(way.at, next.length);
    const LinearAddr target =
        cpu_.onward(way.at, static_cast<std::uint64_t>(std::int64_t{next.target_displacement}));
    if (next.kind == InstructionClass::jcc || next.kind == InstructionClass::loop) {
      Way other = way;
      other.at = target;
      if (may_ask(other)) return true;
    } else if (next.is(Operation::ret)) {
      const Return result = go_back(way, next);
      if (result != Return::followed) return result == Return::unknown;
    } else if (!go_on(way, next, target)) {
      return true;
    }
  }
  return true;
}

ZeroFlagSearch::Return ZeroFlagSearch::go_back(Way& way, const DecodedInstruction& info) const {
  if (!way.stack_pointer) return Return::unknown;
  const std::uint64_t at = *way.stack_pointer;
  move_stack(way, info);
  for (; !way.returns.empty(); way.returns.pop_back()) {
    if (way.returns.back().first != at) continue;
    way.at = way.returns.back().second;
    return Return::followed;
  }
  if (at < first_stack_pointer_) return Return::unknown;
  const auto back = return_address(at, info.operands[0].size);
  if (!back) return Return::nowhere;
  way.at = *back;
  return Return::followed;
}

bool ZeroFlagSearch::go_on(Way& way, const DecodedInstruction& info, LinearAddr target) const {
  const bool jumps = info.kind == InstructionClass::jump || info.kind == InstructionClass::call;
  if (info.control_flow && (!jumps || info.indirect)) return false;
  move_stack(way, info);
  if (info.kind == InstructionClass::call && way.stack_pointer) {
    way.returns.emplace_back(*way.stack_pointer, way.at);
  }
  if (jumps) way.at = target;
  return true;
}

void ZeroFlagSearch::move_stack(Way& way, const DecodedInstruction& info) const {
  if (info.is(Operation::leave)) {
    way.stack_pointer = way.frame_pointer;
    if (way.stack_pointer) *way.stack_pointer += info.operand_bytes;
    way.frame_pointer.reset();
    return;
  }
  const RegisterEffect& effect = info.registers;
  const auto writes = [&](int number) {
    return (effect.others >> number & 1) != 0 ||
           (effect.kind != RegisterEffect::Kind::none && effect.target == number);
  };
  // So do returns that go elsewhere.
  const auto changes_stack = [](const MemoryOperand& operand) {
    return operand.write && operand.kind == OperandKind::address && operand.base == kEsp;
  };
  const auto end = info.operands.begin() + info.operand_count;
  if (writes(kEsp) || std::any_of(info.operands.begin(), end, changes_stack)) {
    way.stack_pointer.reset();
  }
  if (writes(kEbp)) way.frame_pointer.reset();
  if (way.stack_pointer) {
    *way.stack_pointer += static_cast<std::uint64_t>(std::int64_t{info.stack_delta});
  }
}

std::optional<LinearAddr> ZeroFlagSearch::return_address(std::uint64_t stack_pointer,
                                                         std::size_t size) const {
  const std::array<std::uint64_t, 6> bases = cpu_.bases();
  const LinearAddr at =
      cpu_.bits64() ? LinearAddr{stack_pointer}
                    : linear32(static_cast<std::uint32_t>(bases[kSs]),
                               static_cast<std::uint32_t>(stack_pointer) & cpu_.stack_bits());
  std::array<std::uint8_t, 8> bytes{};
  if (known_bytes(cpu_, at, Access::read, {bytes.data(), size}) < size) return std::nullopt;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < size; ++i) offset |= std::uint64_t{bytes[i]} << 8 * i;
  if (cpu_.bits64()) return LinearAddr{offset};
  return linear32(static_cast<std::uint32_t>(bases[kCs]), static_cast<std::uint32_t>(offset));
}

}  // namespace citcat
