#include "replay/x86/register_effect_decoder.h"

#include <optional>

namespace citcat {
namespace {

/// The Gpr that `reg` is or is part of.
std::optional<int> gpr_of(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LEGACY_32, reg);
  if (whole < ZYDIS_REGISTER_EAX || whole > ZYDIS_REGISTER_EDI) return std::nullopt;
  return whole - ZYDIS_REGISTER_EAX;
}

std::optional<int> whole_gpr(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || operand.size != 32) return std::nullopt;
  return gpr_of(operand.reg.value);
}

std::uint8_t written_registers(std::span<const ZydisDecodedOperand> operands) {
  unsigned mask = 0;
  for (const ZydisDecodedOperand& operand : operands) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    if (const auto gpr = gpr_of(operand.reg.value)) mask |= 1u << *gpr;
  }
  return static_cast<std::uint8_t>(mask);
}

class Describer {
 public:
  Describer(const ZydisDecodedInstruction& decoded, std::span<const ZydisDecodedOperand> operands)
      : mnemonic_(decoded.mnemonic), operands_(operands) {}

  RegisterEffect describe() {
    if (operands_.empty()) return effect_;
    const auto target = whole_gpr(operands_[0]);
    if (!target) return effect_;
    effect_.target = static_cast<std::int8_t>(*target);
    switch (mnemonic_) {
      case ZYDIS_MNEMONIC_MOV:
        move();
        break;
      case ZYDIS_MNEMONIC_LEA:
        load_address();
        break;
      case ZYDIS_MNEMONIC_ADD:
        add(1);
        break;
      case ZYDIS_MNEMONIC_SUB:
        add(-1);
        break;
      case ZYDIS_MNEMONIC_INC:
        become(RegisterEffect::Kind::add, 1);
        break;
      case ZYDIS_MNEMONIC_DEC:
        become(RegisterEffect::Kind::add, ~std::uint32_t{0});
        break;
      case ZYDIS_MNEMONIC_XOR:
        if (whole_gpr(operands_[1]) == target) become(RegisterEffect::Kind::set, 0);
        break;
      default:
        break;
    }
    return effect_;
  }

 private:
  void become(RegisterEffect::Kind kind, std::uint32_t constant) {
    effect_.kind = kind;
    effect_.constant = constant;
  }
  std::optional<std::uint32_t> immediate() const {
    if (operands_[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) return std::nullopt;
    return static_cast<std::uint32_t>(operands_[1].imm.value.u);
  }
  void move() {
    if (const auto value = immediate()) {
      become(RegisterEffect::Kind::set, *value);
    } else if (const auto source = whole_gpr(operands_[1])) {
      effect_.source = static_cast<std::int8_t>(*source);
      become(RegisterEffect::Kind::copy, 0);
    }
  }
  void load_address() {
    const auto& memory = operands_[1].mem;
    if (memory.index != ZYDIS_REGISTER_NONE) return;
    const auto displacement = static_cast<std::uint32_t>(memory.disp.value);
    if (memory.base == ZYDIS_REGISTER_NONE) {
      become(RegisterEffect::Kind::set, displacement);
    } else if (memory.base >= ZYDIS_REGISTER_EAX && memory.base <= ZYDIS_REGISTER_EDI) {
      effect_.source = static_cast<std::int8_t>(memory.base - ZYDIS_REGISTER_EAX);
      become(RegisterEffect::Kind::copy, displacement);
    }
  }
  void add(int sign) {
    if (const auto value = immediate()) {
      become(RegisterEffect::Kind::add, sign > 0 ? *value : std::uint32_t{0} - *value);
    }
  }

  ZydisMnemonic mnemonic_;
  std::span<const ZydisDecodedOperand> operands_;
  RegisterEffect effect_;
};

}  // namespace

RegisterEffect decode_register_effect(const DecodedInstruction& info,
                                      const ZydisDecodedInstruction& decoded,
                                      std::span<const ZydisDecodedOperand> operands) {
  RegisterEffect effect;
  unsigned written = written_registers(operands);
  if (decoded.mnemonic == ZYDIS_MNEMONIC_LEAVE && info.operand_bytes == 4) {
    effect.kind = RegisterEffect::Kind::copy;
    effect.target = kEsp;
    effect.source = kEbp;
    effect.constant = 4;
  } else {
    effect = Describer(decoded, operands).describe();
  }
  if (effect.kind != RegisterEffect::Kind::none) written &= ~(1u << effect.target);
  // Zydis 4.0 does not say that CMPS moves its pointers.
  if (info.kind == InstructionClass::string) written |= 1u << kEsi | 1u << kEdi;
  if (info.stack_delta != 0) written &= ~(1u << kEsp);
  effect.others = static_cast<std::uint8_t>(written);
  return effect;
}

}  // namespace citcat
