#pragma once

#include <Zydis/Zydis.h>

#include <span>

#include "replay/x86/decoded_instruction.h"

namespace citcat {

/// The effect of a decoded instruction on the general registers; `info` must have its stack_delta.
RegisterEffect decode_register_effect(const DecodedInstruction& info,
                                      const ZydisDecodedInstruction& decoded,
                                      std::span<const ZydisDecodedOperand> operands);

}  // namespace citcat
