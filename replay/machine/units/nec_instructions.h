#pragma once
// The instructions of NEC's V20 and V30 after 0F (V20/V30 User's Manual, chapter 12). In comments,
// NEC's names of registers follow Intel's.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class Operands;

/// Makes the instruction in flight, which is one of them, but for what retires it.
class NecInstructions {
 public:
  /// All must outlive the object.
  NecInstructions(CpuContext& cpu, InFlight& flight, Operands& operands)
      : cpu_(cpu), flight_(flight), operands_(operands) {}

  static bool is_one(const DecodedInstruction& info);
  /// `value`: of the operand of ModRM. Returns what it becomes, of those that change it. Throws
  /// ReplayStopped for what is not replayed.
  std::uint16_t execute(std::uint16_t value);

 private:
  std::uint16_t change_bit(std::uint16_t value);
  std::uint16_t rotate_digit(std::uint16_t value);
  void add_decimals();
  std::uint16_t move_field(std::uint16_t offset);
  std::uint32_t read(SegmentRegister segment, std::uint16_t offset, std::uint16_t size);
  void plan_store(SegmentRegister segment, std::uint16_t offset, std::uint16_t size);
  SegmentRegister source_segment() const;

  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;
};

}  // namespace citcat
