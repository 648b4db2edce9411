// Flags, and branches that depend on them.

#include <utility>

#include "x86/flow/flow_maker.h"
#include "x86/flow/register_places.h"

namespace citcat::flow {

/// Flag number `bit` becomes bit `bit` modulo 8 of a byte of flags. The bits 1, 3 and 5 are
/// constants (SDM vol. 1, 3.4.3).
void FlowMaker::put_flag(const ValueSpan& byte, unsigned bit) {
  const bool constant = bit == 1 || bit == 3 || bit == 5;
  effect_on_bits(byte, static_cast<std::uint8_t>(1u << bit % 8),
                 constant ? kNothing : at_place(place::flag(bit)), 0xff);
}

/// A bit of such a byte becomes the flag; with `may_be_kept`, the flag may also keep its value.
void FlowMaker::take_flag(unsigned bit, const ValueSpan& byte, bool may_be_kept) {
  const ValueSpan flag = at_place(place::flag(bit));
  effect_on_bits(flag, 0xff, byte, static_cast<std::uint8_t>(1u << bit % 8));
  if (may_be_kept) effect({flag}, {flag});
}

bool FlowMaker::special_flags() {
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_LAHF:
      for (unsigned bit = 0; bit < 8; ++bit) put_flag(at_gpr(kEax, 1, 1), bit);
      return true;
    case ZYDIS_MNEMONIC_SAHF:
      for (const unsigned bit : {0u, 2u, 4u, 6u, 7u}) take_flag(bit, at_gpr(kEax, 1, 1), false);
      return true;
    case ZYDIS_MNEMONIC_SALC:
      effect({at_gpr(kEax, 0, 1)}, {}, {at_place(place::flag(0))});
      return true;
    case ZYDIS_MNEMONIC_SBB: {
      const bool same = operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER &&
                        operand(0).reg.value == operand(1).reg.value;
      if (!same) return false;
      effect({*target(operand(0))}, {}, {at_place(place::flag(0))});
      add_flag_effects({at_place(place::flag(0))});
      return true;
    }
    default:
      break;
  }
  if (info_.kind == InstructionClass::jcc || info_.kind == InstructionClass::loop) {
    std::vector<ValueSpan> flags;
    add_flags(flags_tested(), flags);
    std::vector<PlaceRange> decides;
    for (const ValueSpan& f : flags) decides.push_back({f.first, f.count});
    if (info_.kind == InstructionClass::loop) {
      const PlaceRange count = place::gpr(kEcx, 0, info_.address_bits / 8u);
      decides.push_back(count);
      if (info_.opcode != 0xe3) effect({at_place(count)}, {}, {at_place(count)});
    }
    branch_on(std::move(decides));
    return true;
  }
  if (info_.kind == InstructionClass::jump || info_.kind == InstructionClass::far_jump) {
    if (info_.kind == InstructionClass::far_jump) {
      effect({at_place(place::segment(kCs))}, {},
             info_.indirect ? std::vector{loads(word(), 2)} : std::vector<ValueSpan>{});
    }
    if (!info_.indirect) return true;
    std::vector<PlaceRange> decides;
    if (operand(0).type == ZYDIS_OPERAND_TYPE_REGISTER) {
      if (const auto range = places_of(operand(0).reg.value)) decides.push_back(*range);
    }
    branch_on(std::move(decides));
    return true;
  }
  return false;
}

}  // namespace citcat::flow
