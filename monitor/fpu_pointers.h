#pragma once
// The last x87 instruction and its operand, as FXSAVE stores them: opcode, address of the
// instruction, address of the operand, and their selectors (Intel SDM vol. 1, 8.1.8 and 10.5.1).
// The emulator keeps them for FNSTENV alone; FXSAVE leaves them out there.

#include <cstdint>

namespace citcat::monitor {

class FpuPointers {
 public:
  /// An instruction that sets the pointers starts. They change when it has ended.
  void begin(std::uint16_t opcode, std::uint32_t offset, std::uint16_t code_selector);
  /// It accesses memory; the first access of an instruction counts.
  void operand(std::uint32_t offset, std::uint16_t data_selector);
  void commit();
  bool operand_known() const { return begun_.has_operand; }

  void clear() { now_ = {}; }
  /// FXRSTOR: the first 32 bytes of the image.
  void load_image(const std::uint8_t* image);
  /// FLDENV and FRSTOR: the 28 bytes of the environment in 32-bit protected mode.
  void load_environment(const std::uint8_t* environment);
  /// Puts the fields into the first (`offset` 0) or second (16) block of an FXSAVE image.
  void store(unsigned offset, std::uint8_t* block) const;

 private:
  struct Pointers {
    std::uint16_t opcode = 0, code_selector = 0, data_selector = 0;
    std::uint32_t code_offset = 0, data_offset = 0;
    bool has_operand = false;
  };
  Pointers now_, begun_;
};

}  // namespace citcat::monitor
