#pragma once
// The accesses that an instruction makes to memory, in the processor's order, and the addresses of
// its KT record: AccessPattern made MemoryOperand. Private to the decoder.

#include "events/machine/cpu_traits.h"
#include "x86/decode/decoded_instruction.h"
#include "x86/decode/encoded_operands.h"

namespace citcat {

/// Completes `info`, whose row and encoding are filled in: operands, addresses, change of the stack
/// pointer, and what follows from the class.
class AccessList {
 public:
  /// All must outlive the list.
  AccessList(DecodedInstruction& info, const CpuTraits& traits, const EncodedOperands& encoded)
      : info_(info), traits_(traits), encoded_(encoded), word_(encoded.word) {}

  void build();

 private:
  void add_stack_accesses();
  void add_transfer_accesses();

  void push_segment();
  void pop_segment();
  void parts();
  void load_segment();
  void note_segment_load();
  void far_pointer();
  void pop_register();
  void push_all();
  void pop_all();
  void push_operand();
  void pop_operand();
  void bound();
  void string();
  void compare_strings(unsigned size);
  void xlat();
  void enter();
  void leave();
  void ret(bool far);
  void interrupt_return();
  void jump_indirect();
  void bit_string();
  void masked_move();
  void finish();

  MemoryOperand& add(const MemoryOperand& operand);
  /// The operand of ModRM or moffs; null where it is a register.
  MemoryOperand* add_explicit();
  /// Offset and selector of a far pointer in memory: two accesses, each wrapping on its own.
  void add_far_pointer(bool selector_first);
  /// `count` pushes of `slot` bytes; `size` of them are written (0: all).
  void add_push(unsigned slot, unsigned count = 1, unsigned size = 0);
  void add_pop(unsigned slot, unsigned count = 1, unsigned size = 0);
  MemoryOperand& add_slots(OperandKind kind, int above, unsigned slot, unsigned count,
                           unsigned size);
  void add_string(bool source, unsigned size, bool write);
  void add_ea(EaSource source, unsigned argument = 0);
  void add_ea_operand(unsigned number) { add_ea(EaSource::operand, number); }

  AddressWidth address_width() const { return citcat::address_width(info_); }
  AddressWidth stack_width() const {
    return info_.bits64 ? AddressWidth::bits64 : AddressWidth::stack;
  }
  SegmentRegister override_or(SegmentRegister fallback) const {
    return info_.segment_override < 0 ? fallback
                                      : static_cast<SegmentRegister>(info_.segment_override);
  }

  DecodedInstruction& info_;
  const CpuTraits& traits_;
  const EncodedOperands& encoded_;
  std::uint8_t word_;  ///< 2, 4 or 8: the operand size of forms without a byte variant
};

}  // namespace citcat
