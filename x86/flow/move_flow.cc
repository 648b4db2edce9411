// Moves, and instructions that are nearly moves.

#include <algorithm>

#include "x86/flow/flow_maker.h"
#include "x86/flow/register_places.h"

namespace citcat::flow {

void FlowMaker::exchange() {
  const auto a = source(operand(0)), b = source(operand(1));
  const auto to_a = target(operand(0)), to_b = target(operand(1));
  if (!a || !b || !to_a || !to_b) return;
  if (mnemonic() == ZYDIS_MNEMONIC_XADD) {
    effect({*to_b}, {*a});
    carry(*to_a, operand(0).size / 8, {*a, *b}, {});
    clear_above(*to_a, operand(0).size / 8);
    add_flag_effects({*a, *b});
    return;
  }
  effect({*to_a}, {*b});
  effect({*to_b}, {*a});
}

void FlowMaker::swap_bytes() {
  const auto to = target(operand(0));
  const auto from = source(operand(mnemonic() == ZYDIS_MNEMONIC_MOVBE ? 1 : 0));
  if (!to || !from) return;
  const unsigned bytes = operand(0).size / 8;
  for (unsigned i = 0; i < bytes; ++i) effect({byte_of(*to, i)}, {byte_of(*from, bytes - 1 - i)});
  clear_above(*to, bytes);
}

/// MOVSX: the bytes above are copies of the sign.
void FlowMaker::extend() {
  const auto to = target(operand(0));
  const auto from = source(operand(1));
  if (!to || !from) return;
  const unsigned extended = std::min<unsigned>(operand(0).size / 8, to->count);
  const unsigned count = std::min<unsigned>(operand(1).size / 8, extended);
  effect({{to->of, to->first, static_cast<std::uint16_t>(count)}}, {*from});
  effect({{to->of, static_cast<std::uint16_t>(to->first + count),
           static_cast<std::uint16_t>(extended - count)}},
         {}, {byte_of(*from, count - 1)});
  clear_above(*to, extended);
}

/// CBW and CWD, and their like.
void FlowMaker::widen_accumulator() {
  const unsigned size = word();
  if (info_.opcode == 0x98) {
    effect({at_gpr(kEax, size / 2, size / 2)}, {}, {at_gpr(kEax, size / 2 - 1, 1)});
    if (size == 4) effect({at_gpr(kEax, 4, 4)}, {});
    return;
  }
  effect({at_gpr(kEdx, 0, size)}, {}, {at_gpr(kEax, size - 1, 1)});
  if (size == 4) effect({at_gpr(kEdx, 4, 4)}, {});
}

/// AND, OR and TEST with a constant: bits that the constant alone decides depend on nothing.
void FlowMaker::masked_logic(const ZydisDecodedOperand& to, std::uint64_t mask) {
  const auto from = source(to);
  const auto out = target(to);
  if (!from || !out) return;
  std::vector<ValueSpan> sources;
  const unsigned bytes = to.size / 8;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto part = static_cast<std::uint8_t>(mask >> 8 * i);
    const auto kept = static_cast<std::uint8_t>(mnemonic() == ZYDIS_MNEMONIC_OR ? ~part : part);
    if (kept != 0) sources.push_back(byte_of(*from, i));
    if (!writes(to)) continue;
    ValueEffect lane{{byte_of(*out, i)}, {byte_of(*from, i)}, {}};
    lane.to_bits = kept;
    flow_.effects.push_back(std::move(lane));
    effect_on_bits(byte_of(*out, i), static_cast<std::uint8_t>(~kept), kNothing, 0);
  }
  if (writes(to)) clear_above(*out, bytes);
  add_flag_effects(std::move(sources));
}

void FlowMaker::port_string() {
  if (info_.kind == InstructionClass::ins) effect({kStores}, {}, {kInput});
  for (const ZydisDecodedOperand& o : all_operands()) {
    if (!is_pointer_of_string(o)) continue;
    const auto range = at_place(*places_of(o.reg.value));
    effect({range}, {}, {range, at_place(place::flag(10))});
  }
  flow_.addresses.push_back(place::gpr(kEdx, 0, 2));
}

bool FlowMaker::special_moves() {
  if (info_.kind == InstructionClass::ins || info_.kind == InstructionClass::outs) {
    port_string();
    return true;
  }
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_PAUSE:
      return true;
    case ZYDIS_MNEMONIC_XCHG:
    case ZYDIS_MNEMONIC_XADD:
      exchange();
      return true;
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_MOVBE:
      swap_bytes();
      return true;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      extend();
      return true;
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWD:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
      widen_accumulator();
      return true;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_TEST:
      if (operand(1).type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return false;
      masked_logic(operand(0), operand(1).imm.value.u);
      return true;
    case ZYDIS_MNEMONIC_IN:
      effect({*target(operand(0))}, {}, {kInput});
      flow_.addresses.push_back(
          place::gpr(kEdx, 0, operand(1).type == ZYDIS_OPERAND_TYPE_REGISTER ? 2 : 0));
      return true;
    case ZYDIS_MNEMONIC_OUT:
      return true;
    case ZYDIS_MNEMONIC_LEA: {
      // Compilers fill gaps with it.
      const bool fills = operand(1).mem.base == operand(0).reg.value &&
                         operand(1).mem.index == ZYDIS_REGISTER_NONE &&
                         operand(1).mem.disp.value == 0 && !info_.bits64;
      if (fills) return true;
      std::vector<ValueSpan> from;
      for (const ZydisRegister reg : {operand(1).mem.base, operand(1).mem.index}) {
        if (const auto range = places_of(reg)) from.push_back(at_place(*range));
      }
      const ValueSpan to = *target(operand(0));
      carry(to, operand(0).size / 8, from, {});
      clear_above(to, operand(0).size / 8);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace citcat::flow
