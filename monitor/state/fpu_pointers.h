#pragma once
// The last x87 instruction and its operand, as FXSAVE stores them: opcode, address of the
// instruction, address of the operand, and their selectors (Intel SDM vol. 1, 8.1.8 and 10.5.1).
// The emulator keeps other values for FNSTENV and FNSAVE, and its FXSAVE leaves them out.

#include <cstdint>
#include <span>

namespace citcat::monitor {

/// A form of the x87 environment (Intel SDM vol. 1, figures 8-9 to 8-12).
struct EnvironmentForm {
  bool wide = true;     ///< fields of 4 bytes
  bool linear = false;  ///< of virtual-8086 mode: linear addresses in place of selectors
  unsigned bytes() const { return wide ? 28 : 14; }
};

class FpuPointers {
 public:
  /// An instruction that sets the pointers starts. They change when it has ended.
  void begin(std::uint16_t opcode, std::uint64_t offset, std::uint16_t code_selector);
  /// It accesses memory; the first access of an instruction counts.
  void operand(std::uint64_t offset, std::uint16_t data_selector);
  void commit();
  bool operand_known() const { return begun_.has_operand; }

  void clear() { now_ = {}; }
  /// FXRSTOR: the first 32 bytes of the image. `wide`: of the form that REX.W makes, with offsets
  /// of 64 bits where the other one has selectors too.
  void load_image(const std::uint8_t* image, bool wide = false);
  /// FLDENV and FRSTOR: the environment, field by field.
  void load_environment(EnvironmentForm form, std::span<const std::uint32_t, 7> fields);
  /// What FNSTENV and FNSAVE store as field `n`, where the emulator stores `emulated`.
  std::uint32_t stored_field(EnvironmentForm form, unsigned n, std::uint32_t emulated) const;
  /// Puts the fields into the first (`offset` 0) or second (16) block of an FXSAVE image; `wide` as
  /// for load_image().
  void store(unsigned offset, std::uint8_t* block, bool wide = false) const;

 private:
  struct Pointers {
    std::uint16_t opcode = 0, code_selector = 0, data_selector = 0;
    std::uint64_t code_offset = 0, data_offset = 0;
    bool has_operand = false;
  };
  Pointers now_, begun_;
};

}  // namespace citcat::monitor
