#include "replay/x86/operand_describer.h"

#include "replay/x86/instruction_describer.h"

namespace citcat {

void describe_instruction(InstructionInfo& info, CpuModel model,
                          const ZydisDecodedInstruction& decoded,
                          std::span<const ZydisDecodedOperand> operands) {
  if (info.opcode_map == 0) {
    describe_one_byte(info, model, decoded, operands);
  } else {
    describe_two_byte(info, model, decoded, operands);
  }
}

}  // namespace citcat
