#pragma once
// Flags that the manuals leave undefined, as the captured processor leaves them
// (undefined_flags.h).

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/undefined_flags.h"

namespace citcat {

class Operands;

/// begin() before each instruction that the engine executes; correct() after it, which asks for
/// AfterStop::fix_flags where the engine left others.
class FlagCorrection {
 public:
  /// All must outlive the object.
  FlagCorrection(CpuContext& cpu, Operands& operands) : cpu_(cpu), operands_(operands) {}

  /// The instruction about to be executed.
  void begin(const DecodedInstruction& info) {
    if (info.bits64) keep_register(info);
    fixes_flags_ = info.flag_rule != FlagRule::none && has_flag_rule(info, cpu_.model);
    if (fixes_flags_) keep_inputs(info);
  }
  /// Once its operands may be read.
  void read_operand_before(const DecodedInstruction& info);
  /// AfterStop::fix_flags.
  void apply() { cpu_.engine.set_eflags(fix_flags_); }

  /// After it.
  void correct(const DecodedInstruction& info);

 private:
  void keep_register(const DecodedInstruction& info);
  void put_register_back(const DecodedInstruction& info);
  void keep_inputs(const DecodedInstruction& info);

  CpuContext& cpu_;
  Operands& operands_;

  bool fixes_flags_ = false;
  std::int8_t kept_ = kNoRegister;  ///< a register whose upper half the engine clears
  std::uint64_t kept_value_ = 0;
  std::uint64_t kept_destination_ = 0;  ///< of CMPXCHG with a register
  FlagInputs flag_inputs_;
  std::optional<LinearAddr> flag_operand_;  ///< address of the explicit operand
  std::uint32_t fix_flags_ = 0;
};

}  // namespace citcat
