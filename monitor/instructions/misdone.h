#pragma once
// Instructions that QEMU 10 does not execute as a processor does: it executes what processors
// refuse, refuses what they execute, or computes something else. Found by executing every opcode of
// one and two bytes, with each ModRM byte and prefix, at level 0 (docs/monitor.md).

#include <cstdint>
#include <span>

#include "monitor/instructions/insn_class.h"

namespace citcat::monitor {

/// What is before an opcode, as far as it counts here.
struct OpcodePrefixes {
  bool operand = false, repeat = false;  ///< 66; F2 or F3
};

/// Sets `why_misdone` and `unknown` of an instruction that is one of them. `opcode`: its bytes
/// after the prefixes.
void note_misdone(std::span<const std::uint8_t> opcode, OpcodePrefixes prefixes, CodeSize size,
                  InsnDetails& out);

}  // namespace citcat::monitor
