// Flags, and branches that depend on them.

#include <utility>

#include "x86/flow/flow_maker.h"
#include "x86/flow/register_places.h"

namespace citcat::flow {

bool FlowMaker::special_flags() {
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_LAHF: {
      std::vector<ValueSpan> bits;
      add_flags(0xd5, bits);
      effect({at_gpr(kEax, 1, 1)}, {}, bits);
      return true;
    }
    case ZYDIS_MNEMONIC_SAHF:
      for (const unsigned bit : {0u, 2u, 4u, 6u, 7u}) {
        effect({at_place(place::flag(bit))}, {at_gpr(kEax, 1, 1)});
      }
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
