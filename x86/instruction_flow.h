#pragma once
// Which registers an instruction takes values and addresses from, and which it changes.

#include <cstdint>
#include <span>
#include <string>

namespace citcat {

/// Registers an instruction depends on and changes. Bit 0..7: Gpr; then those named here, the last
/// of them R8 to R15.
struct InstructionFlow {
  enum Register : unsigned {
    kFlags = 8,
    kSegments = 9,
    kControl = 15,
    kVector = 16,
    kTables = 17,
    kExtended = 18
  };
  static constexpr unsigned kRegisters = kExtended + 8;
  std::uint32_t values = 0;     ///< read as operands
  std::uint32_t addresses = 0;  ///< read to form addresses
  std::uint32_t written = 0;
};
/// The flow of the single instruction in `code`. `bits` is 16 or 32, or 64 for 64-bit mode. If only
/// the other one of 16 and 32 gives this length, that is used.
InstructionFlow instruction_flow(std::span<const std::uint8_t> code, int bits);
/// "eax", "eflags", "ds", "cr", "fpu", "tables"; of processors with long mode "rax", "rflags",
/// "r8".
std::string flow_register_name(unsigned number, bool long_mode);

}  // namespace citcat
