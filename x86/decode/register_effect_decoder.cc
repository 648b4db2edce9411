#include "x86/decode/register_effect_decoder.h"

namespace citcat {
namespace {

using EffectKind = RegisterEffect::Kind;

std::uint16_t written_registers(const DecodedInstruction& info, unsigned word) {
  const OpcodeRow& row = *info.row;
  unsigned mask = row.registers;
  const auto add = [&](unsigned operand) {
    const int gpr = operand_register(info, operand, word);
    if (gpr >= 0) mask |= 1u << gpr;
  };
  if (row.access != OperandAccess::reads) add(0);
  const bool two = row.access == OperandAccess::exchanges || row.operation == Operation::mulx;
  if (two) add(1);
  if (info.is_repeated()) mask |= 1u << kEcx;
  return static_cast<std::uint16_t>(mask);
}

/// An effect on all of a register that is a constant, a sum or a copy.
class EffectReader {
 public:
  EffectReader(const DecodedInstruction& info, const EncodedOperands& encoded)
      : info_(info), encoded_(encoded) {}

  RegisterEffect describe() {
    const int target = whole_register(0);
    if (target < 0) return effect_;
    effect_.target = static_cast<std::int8_t>(target);
    switch (info_.row->operation) {
      case Operation::mov:
        move();
        break;
      case Operation::lea:
        load_address();
        break;
      case Operation::add:
        if (has_immediate()) become(EffectKind::add, immediate());
        break;
      case Operation::sub:
        if (has_immediate()) become(EffectKind::add, std::uint32_t{0} - immediate());
        break;
      case Operation::inc:
        become(EffectKind::add, 1);
        break;
      case Operation::dec:
        become(EffectKind::add, ~std::uint32_t{0});
        break;
      case Operation::xor_:
        if (whole_register(1) == target) become(EffectKind::set, 0);
        break;
      default:
        break;
    }
    return effect_;
  }

 private:
  void become(EffectKind kind, std::uint32_t constant) {
    effect_.kind = kind;
    effect_.constant = constant;
  }
  int whole_register(unsigned operand) const {
    const bool whole = register_size(info_.row->operands[operand], encoded_.word) == 4;
    return whole ? operand_register(info_, operand, encoded_.word) : kNoRegister;
  }
  bool has_immediate() const {
    const OperandForm form = info_.row->operands[1];
    return form == OperandForm::Iz || form == OperandForm::Ibs;
  }
  std::uint32_t immediate() const {
    const std::uint32_t value = encoded_.immediates[0];
    if (info_.row->operands[1] == OperandForm::Iz) return value;
    return static_cast<std::uint32_t>(static_cast<std::int8_t>(value));
  }
  void move() {
    if (has_immediate()) return become(EffectKind::set, immediate());
    const int source = whole_register(1);
    if (source < 0) return;
    effect_.source = static_cast<std::int8_t>(source);
    become(EffectKind::copy, 0);
  }
  void load_address() {
    const MemoryOperand& memory = encoded_.address;
    if (memory.index != kNoRegister) return;
    const auto displacement = static_cast<std::uint32_t>(memory.displacement);
    if (memory.base == kNoRegister) return become(EffectKind::set, displacement);
    if (memory.width != AddressWidth::bits32) return;
    effect_.source = memory.base;
    become(EffectKind::copy, displacement);
  }

  const DecodedInstruction& info_;
  const EncodedOperands& encoded_;
  RegisterEffect effect_;
};

}  // namespace

RegisterEffect decode_register_effect(const DecodedInstruction& info,
                                      const EncodedOperands& encoded) {
  RegisterEffect effect;
  unsigned written = written_registers(info, encoded.word);
  if (info.row->operation == Operation::leave && encoded.word == 4 && !info.bits64) {
    effect.kind = EffectKind::copy;
    effect.target = kEsp;
    effect.source = kEbp;
    effect.constant = 4;
  } else if (!info.bits64) {  // only sums of 32 bits are followed
    effect = EffectReader(info, encoded).describe();
  }
  if (effect.kind != EffectKind::none) written &= ~(1u << effect.target);
  if (info.stack_delta != 0) written &= ~(1u << kEsp);
  effect.others = static_cast<std::uint16_t>(written);
  return effect;
}

}  // namespace citcat
