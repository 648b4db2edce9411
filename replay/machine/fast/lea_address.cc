#include "replay/machine/fast/lea_address.h"

namespace citcat::fast {

/// ModRM, SIB and displacement (Intel SDM vol. 2, tables 2-1 to 2-3, and 2.2.1 of 64-bit mode).
void put_lea_address(const DecodedInstruction& info, std::uint64_t next, Op& op) {
  op.base = op.index = State::kZero;
  op.segment = kDs;
  const std::uint8_t* at = &info.bytes[info.prefix_bytes + 1u];
  const unsigned mod = info.modrm >> 6, rm = info.modrm & 7;
  ++at;
  const auto signed_byte = [](std::uint8_t b) {
    return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(b)});
  };
  const auto word = [&](unsigned bytes) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= std::uint32_t{at[i]} << 8 * i;
    return sign_extended(value);
  };
  if (info.address_bits == 16) {
    constexpr std::uint8_t kNone = State::kRegisters;
    constexpr std::uint8_t kBase[8] = {3, 3, 5, 5, 6, 7, 5, 3};  // BX BX BP BP SI DI BP BX
    constexpr std::uint8_t kIndex[8] = {6, 7, 6, 7, kNone, kNone, kNone, kNone};
    const bool absolute = mod == 0 && rm == 6;
    if (!absolute) {
      op.base = register_at(kBase[rm]);
      op.index = register_at(kIndex[rm]);
    }
    op.displacement = mod == 1 ? signed_byte(*at) : mod == 2 || absolute ? word(2) : 0;
    return;
  }
  unsigned base = rm;
  if (rm == 4) {
    const std::uint8_t sib = *at++;
    base = sib & 7;
    const unsigned index = (sib >> 3 & 7) | info.rex_bit(kRexX);
    if (index != 4) {
      op.index = register_at(index);
      op.shift = sib >> 6;
    }
  }
  const bool absolute = mod == 0 && base == 5;
  if (!absolute) op.base = register_at(base | info.rex_bit(kRexB));
  op.displacement = mod == 1 ? signed_byte(*at) : mod == 2 || absolute ? word(4) : 0;
  const bool from_code = absolute && rm != 4 && info.bits64;
  if (from_code) op.displacement += next;
}

}  // namespace citcat::fast
