#pragma once
// Instructions that the 8086 and 8088 execute by microcode, step by step: multiplication, division,
// shifts, and the adjustments of decimal numbers. The steps decide what no manual defines: flags
// left undefined, what a REP prefix does to a product or quotient, and when a quotient is refused.
//
// Sources: A. Jenner's disassembly of the microcode ("8086 microcode disassembled", reenigne.org,
// 2020); K. Shirriff, "Reverse-engineering the multiplication algorithm in the Intel 8086
// processor", "Reverse-engineering the division microcode in the Intel 8086 processor" and
// "Understanding the x86's Decimal Adjust after Addition (DAA) instruction" (righto.com, 2023).
// Both processors have the same microcode: they differ in the width of the bus (8086 Family User's
// Manual, 4-1). Checked against single-step tests of an 8086 (docs/silicon.md).

#include <cstdint>
#include <optional>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// The input of such an instruction.
struct MicrocodeInput {
  std::uint16_t ax = 0, dx = 0;
  std::uint8_t cl = 0;
  std::uint16_t operand = 0;  ///< the explicit one, of a byte zero-extended
  std::uint32_t flags = 0;
  bool is_behind_repeat = false;  ///< F1 is set at first
};

/// F2 or F3 is before it.
bool is_behind_repeat(const DecodedInstruction& info);

/// Its results.
struct MicrocodeResult {
  std::uint16_t ax = 0, dx = 0;          ///< not of a shift
  std::optional<std::uint16_t> operand;  ///< of a shift alone
  std::uint32_t flags = 0;               ///< of a divide error those that are pushed
  bool divide_error = false;             ///< nothing but `flags` has changed
};

/// `info` is one of them.
bool is_microcoded(const DecodedInstruction& info);

/// Executes it. It must be one of these instructions.
MicrocodeResult run_microcode(const DecodedInstruction& info, const MicrocodeInput& input);

}  // namespace citcat
