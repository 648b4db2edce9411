#include "replay/x86/operand_decoder.h"

#include "replay/x86/instruction_decoder.h"

namespace citcat {

void decode_operands(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands) {
  if (info.opcode_map == 0) {
    decode_one_byte(info, model, decoded, operands);
  } else {
    decode_two_byte(info, model, decoded, operands);
  }
}

}  // namespace citcat
