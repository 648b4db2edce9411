// The addresses of memory operands that the emulator does not report.

#include <algorithm>
#include <array>

#include "monitor/recorder/recorder.h"

namespace citcat::monitor {

std::uint64_t Recorder::effective_address(const Insn& insn, const LoggedState& state) {
  const MemoryOperand& operand = insn.what.operand;
  std::array<std::uint64_t, kRip + 1> registers;
  std::copy(std::begin(state.gpr), std::end(state.gpr), registers.begin());
  registers[kRip] = insn.linear + displacement_;
  const std::uint64_t offset = operand_offset(operand, registers.data(), true);
  // In 64-bit mode FS and GS alone have a base.
  const bool flat = insn.code == CodeSize::bits64 && operand.segment < kFs;
  const std::uint64_t base = flat ? 0 : state.segment[operand.segment].base;
  return linear_at(base, offset, operand.width).value;
}

}  // namespace citcat::monitor
