#pragma once
// The memory operands of an instruction and the addresses of its KT record, as they are added one
// by one to what is known of it. Private to the decoder.

#include <Zydis/Zydis.h>

#include <cstdint>
#include <optional>
#include <span>

#include "replay/x86/decoded_instruction.h"

namespace citcat {

class OperandList {
 public:
  /// Of `info` the encoding fields are filled in. All must outlive the list.
  OperandList(DecodedInstruction& info, CpuModel model, const ZydisDecodedInstruction& decoded,
              std::span<const ZydisDecodedOperand> operands);

 protected:
  MemoryOperand& add(const MemoryOperand& operand);
  AddressWidth address_width() const {
    return info_.address_bits == 16 ? AddressWidth::bits16 : AddressWidth::bits32;
  }
  SegmentRegister override_or(SegmentRegister fallback) const {
    return info_.segment_override < 0 ? fallback
                                      : static_cast<SegmentRegister>(info_.segment_override);
  }
  /// The ModRM or moffs operand with Zydis' size and direction, not yet added.
  std::optional<MemoryOperand> make_explicit() const;
  /// Adds it; null where there is none.
  MemoryOperand* add_explicit();
  MemoryOperand* add_explicit(unsigned size, bool read, bool write);
  /// Offset and selector of a far pointer in memory: two accesses, each wrapping on its own.
  void add_far_pointer(bool selector_first);
  /// `count` pushes of `slot` bytes, of which `size` are written (0: all).
  void add_push(unsigned slot, unsigned count = 1, unsigned size = 0);
  void add_pop(unsigned slot, unsigned count = 1, unsigned size = 0);
  void add_string(bool source, unsigned size, bool write);

  // Addresses of the KT record.
  void add_ea(EaSource source, unsigned argument = 0);
  void add_ea_operand(unsigned number) { add_ea(EaSource::operand, number); }
  void add_operand_eas() {
    if (info_.operand_count > 0) add_ea_operand(0);
  }

  DecodedInstruction& info_;
  CpuModel model_;
  const ZydisDecodedInstruction& decoded_;
  std::span<const ZydisDecodedOperand> zydis_operands_;
  std::uint8_t word_;  ///< 2 or 4: the operand size of forms without a byte variant

 private:
  const ZydisDecodedOperand* explicit_memory() const;
  MemoryOperand& add_slots(OperandKind kind, int above, unsigned slot, unsigned count,
                           unsigned size);
};

}  // namespace citcat
