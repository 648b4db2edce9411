#pragma once

#include <Zydis/Zydis.h>

#include <span>

#include "replay/x86/instruction_info.h"

namespace citcat {

/// The effect of a decoded instruction on the general registers; `info` must have its stack_delta.
RegisterEffect describe_registers(const InstructionInfo& info,
                                  const ZydisDecodedInstruction& decoded,
                                  std::span<const ZydisDecodedOperand> operands);

}  // namespace citcat
