#pragma once
// The meaning of an instruction: which accesses it makes in which order, what the replayer must do
// with it, which effective addresses its KT record carries. Zydis gives the explicit operands; the
// order of accesses and the implicit ones are here. Private to the decoder.

#include <Zydis/Zydis.h>

#include <span>

#include "replay/x86/decoded_instruction.h"

namespace citcat {

/// The SegmentRegister of a Zydis register; DS for anything else.
SegmentRegister segment_number(ZydisRegister reg);

/// Completes `info`, whose encoding fields are filled in, from what Zydis decoded.
void decode_operands(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands);

}  // namespace citcat
