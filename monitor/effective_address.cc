// Where a memory operand is that the emulator tells nothing of.

#include <cstring>

#include "monitor/recorder.h"

namespace citcat::monitor {
namespace {

/// Takes displacements from behind ModRM and SIB.
class OperandBytes {
 public:
  explicit OperandBytes(const std::uint8_t* at) : at_(at) {}
  std::uint8_t byte() { return *at_++; }
  /// `size` bytes, one or four of them with their sign.
  std::uint64_t displacement(unsigned size) {
    std::uint32_t v = 0;
    std::memcpy(&v, at_, size);
    at_ += size;
    if (size == 1) return static_cast<std::uint64_t>(static_cast<std::int8_t>(v));
    return size == 4 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(v)) : v;
  }

 private:
  const std::uint8_t* at_;
};

struct Operand {
  std::uint64_t offset = 0;
  unsigned segment = 3;
};

Operand operand_of_16_bits(std::uint8_t modrm, OperandBytes bytes, const LoggedState& state) {
  static constexpr int kBase[8] = {3, 3, 5, 5, -1, -1, 5, 3};
  static constexpr int kIndex[8] = {6, 7, 6, 7, 6, 7, -1, -1};
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  Operand out;
  if (mod == 0 && rm == 6) {
    out.offset = bytes.displacement(2);
    return out;
  }
  if (kBase[rm] >= 0) out.offset += state.gpr[kBase[rm]];
  if (kIndex[rm] >= 0) out.offset += state.gpr[kIndex[rm]];
  if (kBase[rm] == 5) out.segment = 2;
  if (mod == 1) out.offset += bytes.displacement(1);
  if (mod == 2) out.offset += bytes.displacement(2);
  return out;
}

/// `behind`: where the next instruction is, to which RIP-relative operands are.
Operand operand_of_32_bits(std::uint8_t modrm, OperandBytes bytes, const Insn& insn,
                           const LoggedState& state, std::uint64_t behind) {
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  const unsigned more_base = (insn.what.rex & kRexB) != 0 ? 8 : 0;
  const unsigned more_index = (insn.what.rex & kRexX) != 0 ? 8 : 0;
  Operand out;
  unsigned base = rm;
  if (rm == 4) {
    const std::uint8_t sib = bytes.byte();
    base = sib & 7;
    const unsigned index = ((sib >> 3) & 7u) | more_index;
    if (index != 4) out.offset += state.gpr[index] << (sib >> 6);
  }
  if (mod == 0 && base == 5) {
    out.offset += bytes.displacement(4);
    if (rm == 5 && insn.code == CodeSize::bits64) out.offset += behind;
  } else {
    out.offset += state.gpr[base | more_base];
    if (more_base == 0 && (base == 4 || base == 5)) out.segment = 2;
  }
  if (mod == 1) out.offset += bytes.displacement(1);
  if (mod == 2) out.offset += bytes.displacement(4);
  return out;
}

}  // namespace

std::uint64_t Recorder::effective_address(const Insn& insn, const LoggedState& state) {
  OperandBytes bytes(insn.bytes.data() + insn.what.modrm_offset);
  const std::uint8_t modrm = bytes.byte();
  const std::uint64_t behind = insn.linear + displacement_ + insn.size;
  Operand operand = insn.what.address_bytes == 2
                        ? operand_of_16_bits(modrm, bytes, state)
                        : operand_of_32_bits(modrm, bytes, insn, state, behind);
  operand.offset &= address_mask(insn.what.address_bytes);
  if (insn.what.segment_override >= 0)
    operand.segment = static_cast<unsigned>(insn.what.segment_override);
  if (insn.code == CodeSize::bits64)
    return operand.segment < 4 ? operand.offset
                               : state.segment[operand.segment].base + operand.offset;
  return static_cast<std::uint32_t>(state.segment[operand.segment].base + operand.offset);
}

}  // namespace citcat::monitor
