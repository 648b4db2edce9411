#include "replay/machine/units/flag_correction.h"

#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "replay/machine/units/operands.h"
#include "x86/early_cpu_quirks.h"

namespace citcat {

void FlagCorrection::keep_inputs(const DecodedInstruction& info) {
  flag_inputs_.eflags = cpu_.engine.eflags();
  for (std::size_t i = 0; i < 8; ++i) flag_inputs_.gpr[i] = cpu_.engine.gpr(static_cast<int>(i));
  flag_inputs_.memory = 0;
  flag_operand_.reset();
  if (cpu_.traits.undefined_flags != CpuTraits::UndefinedFlags::i286 || info.operand_count == 0)
    return;  // later rules need no memory
  const MemoryOperand& operand = info.operands[0];
  flag_operand_ = cpu_.linear_of(operand);
}

/// In 64-bit mode a comparison with EAX that finds it equal leaves RAX alone, one that does not a
/// register that it was made with, and a scan that finds no bit its destination (SDM vol. 2,
/// CMPXCHG; BSF and BSR: AMD64 Architecture Programmer's Manual vol. 3; a host, docs/silicon.md).
/// The engine writes their lower halves, which clears the upper ones.
void FlagCorrection::keep_register(const DecodedInstruction& info) {
  kept_ = kNoRegister;
  if (info.operand_bytes != 4) return;
  if (info.is(Operation::cmpxchg)) {
    kept_ = kEax;
  } else if (info.flag_rule == FlagRule::bit_scan) {
    kept_ = static_cast<std::int8_t>(info.reg_field);
  } else {
    return;
  }
  kept_value_ = cpu_.engine.wide().gpr(kept_);
  if (info.register_form) kept_destination_ = cpu_.engine.wide().gpr(info.rm_field);
}

/// Between instructions, where the flags are whole.
void FlagCorrection::put_register_back(const DecodedInstruction& info) {
  const int number = std::exchange(kept_, kNoRegister);
  const bool with_register = info.is(Operation::cmpxchg) && info.register_form;
  if ((cpu_.engine.eflags() & kZf) == 0) {
    if (with_register) cpu_.engine.wide().set_gpr(info.rm_field, kept_destination_);
    return;
  }
  // CMPXCHG r/m32 of EAX itself has stored to it.
  const bool stored = with_register && info.rm_field == kEax;
  if (!stored) cpu_.engine.wide().set_gpr(number, kept_value_);
}

void FlagCorrection::correct(const DecodedInstruction& info) {
  if (info.bits64 && kept_ != kNoRegister) put_register_back(info);
  const bool loads = cpu_.traits.sixteen_bit &&
                     (info.kind == InstructionClass::popf || info.kind == InstructionClass::iret);
  if (!fixes_flags_ && !loads) return;
  const std::uint32_t now = cpu_.engine.eflags();
  std::uint32_t wanted = now;
  if (loads) wanted = loaded_flags(cpu_.model, cpu_.protected_mode(), now);
  if (fixes_flags_) {
    std::uint32_t memory = 0;
    if (flag_operand_) {
      std::array<std::uint8_t, 4> bytes{};
      operands_.read(*flag_operand_, std::span(bytes).first(info.operand_bytes));
      std::memcpy(&memory, bytes.data(), 4);
    }
    wanted = fixed_flags(info, cpu_.model, flag_inputs_, now, cpu_.engine.gprs(), memory);
  }
  if (wanted == now) return;
  fix_flags_ = wanted;
  cpu_.after_stop = AfterStop::fix_flags;
}

void FlagCorrection::read_operand_before(const DecodedInstruction& info) {
  if (!fixes_flags_ || !flag_operand_) return;
  flag_inputs_.memory = operands_.read_value(*flag_operand_, info.operand_bytes);
}

}  // namespace citcat
