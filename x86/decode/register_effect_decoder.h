#pragma once
// Finds the effect of an instruction on the general registers from its row and operands. Private to
// the decoder.

#include "x86/decode/decoded_instruction.h"
#include "x86/decode/encoded_operands.h"

namespace citcat {

/// The effect of `info`, complete but for it: its row, ModRM and stack_delta are filled in.
RegisterEffect decode_register_effect(const DecodedInstruction& info,
                                      const EncodedOperands& encoded);

}  // namespace citcat
