#pragma once
// Which registers an instruction takes values and addresses from, and which it changes.

#include <cstdint>
#include <span>
#include <string>

namespace citcat {

/// Registers an instruction depends on and changes. Bit 0..7: Gpr; then those named here.
struct InstructionFlow {
  enum Register : unsigned { kFlags = 8, kSegments = 9, kControl = 15, kVector = 16, kTables = 17 };
  std::uint32_t values = 0;     ///< read as operands
  std::uint32_t addresses = 0;  ///< read to form addresses
  std::uint32_t written = 0;
};
/// Of the instruction that `code` is, the whole of it. `bits` is 16 or 32; the other is taken where
/// only that gives this length.
InstructionFlow instruction_flow(std::span<const std::uint8_t> code, int bits);
/// "eax", "eflags", "ds", "cr", "fpu", "tables".
std::string flow_register_name(unsigned number);

}  // namespace citcat
