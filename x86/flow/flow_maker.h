#pragma once
// Makes the flow of one instruction: for most from their operands, for the others by a rule of
// their own. Private to the room.

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "x86/flow/flow_spans.h"
#include "x86/flow/vector_shapes.h"

namespace citcat::flow {

class FlowMaker {
 public:
  explicit FlowMaker(const DecodedInstruction& info) : info_(info) {}

  ValueFlow make();

 private:
  ZydisMnemonic mnemonic() const { return instruction_.mnemonic; }
  std::span<const ZydisDecodedOperand> all_operands() const {
    return {operands_.data(), instruction_.operand_count};
  }
  const ZydisDecodedOperand& operand(unsigned i) const { return operands_[i]; }
  unsigned word() const { return std::max<unsigned>(info_.operand_bytes, 1); }

  bool decode();

  // ---- parts of operands

  static bool reads(const ZydisDecodedOperand& o) {
    return (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
  }
  static bool writes(const ZydisDecodedOperand& o) {
    return (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
  }
  bool touches_mmx() const;
  /// The place that an operand reads; nullopt for a constant.
  std::optional<ValueSpan> source(const ZydisDecodedOperand& o) const;
  /// The place that an operand writes. A write of 32 bits of a register of 64 clears the others.
  std::optional<ValueSpan> target(const ZydisDecodedOperand& o) const;
  bool is_hidden_stack_pointer(const ZydisDecodedOperand& o) const {
    return o.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
           o.type == ZYDIS_OPERAND_TYPE_REGISTER && is_stack_pointer(o.reg.value);
  }
  static bool is_stack_pointer(ZydisRegister reg) {
    return reg == ZYDIS_REGISTER_SP || reg == ZYDIS_REGISTER_ESP || reg == ZYDIS_REGISTER_RSP;
  }
  void effect(std::vector<ValueSpan> to, std::vector<ValueSpan> lanes,
              std::vector<ValueSpan> whole = {}) {
    if (!to.empty()) flow_.effects.push_back({std::move(to), std::move(lanes), std::move(whole)});
  }
  /// Only where so much is popped, or where it is not.
  void effect_when(ValueEffect::When when, ValueSpan told_by, ValueEffect effect) {
    effect.when = when;
    effect.told_by = told_by;
    flow_.effects.push_back(std::move(effect));
  }
  /// The bits `to_bits` of a byte depend on the bits `from_bits` of another one.
  void effect_on_bits(const ValueSpan& to, std::uint8_t to_bits, const ValueSpan& from,
                      std::uint8_t from_bits) {
    ValueEffect bits{{to}, {}, {from}};
    bits.to_bits = to_bits;
    bits.from_bits = from_bits;
    flow_.effects.push_back(std::move(bits));
  }
  void step_stack_pointer() { effect({at_gpr(kEsp, 0, 8)}, {}, {at_gpr(kEsp, 0, 8)}); }

  // ---- flags

  std::uint32_t flags_tested() const {
    return instruction_.cpu_flags == nullptr ? 0 : instruction_.cpu_flags->tested;
  }
  /// Flags that it gives a value other than a constant of the instruction.
  std::uint32_t flags_computed() const {
    if (instruction_.cpu_flags == nullptr) return 0;
    const ZydisAccessedFlags& f = *instruction_.cpu_flags;
    return (f.modified | f.undefined) & ~(f.set_0 | f.set_1);
  }
  std::uint32_t flags_set() const {
    if (instruction_.cpu_flags == nullptr) return 0;
    return instruction_.cpu_flags->set_0 | instruction_.cpu_flags->set_1;
  }
  void add_flag_effects(std::vector<ValueSpan> from);
  void put_flag(const ValueSpan& byte, unsigned bit);
  void take_flag(unsigned bit, const ValueSpan& byte, bool may_be_kept);
  std::uint32_t flags_left_undefined() const;
  /// It shifts, and by a count that may be 0.
  bool may_shift_by_none() const {
    const bool shifts =
        (info_.flag_rule >= FlagRule::shift_left && info_.flag_rule <= FlagRule::double_shift);
    return shifts && (shift_count(info_, 0) & shift_count_bits(info_)) == 0;
  }

  // ---- instructions with rules of their own

  bool special();
  bool special_stack();
  bool special_moves();
  bool special_flags();
  bool special_system();
  bool special_vectors();
  bool special_shifts();
  bool vector_move();
  bool vector_shuffle();
  bool blend_by_signs(unsigned size, const ValueSpan& to, const ValueSpan& first,
                      const ValueSpan& second);
  bool vector_elements();
  bool each_element(const VectorShape& shape, const ValueSpan& to, const ValueSpan& from,
                    unsigned count);
  bool sign_bits(unsigned size, const ValueSpan& to, const ValueSpan& from, unsigned bytes);
  void ordinary();
  void push_all();
  void pop_all();
  void far_return(bool interrupt);
  void pop_returned_flags(unsigned from);
  void exchange();
  void swap_bytes();
  void extend();
  void widen_accumulator();
  void push_flags();
  void pop_flags();
  void add_image(bool saves);
  void call();
  void load_flat_segments(const ValueSpan& from);
  void masked_logic(const ZydisDecodedOperand& to, std::uint64_t mask);
  void port_string();
  void carry(const ValueSpan& to, unsigned bytes, const std::vector<ValueSpan>& from,
             const std::vector<ValueSpan>& flags);
  void clear_above(const ValueSpan& to, unsigned bytes);
  std::vector<ValueSpan> read_spans(bool with_hidden_pointers) const;
  bool is_pointer_of_string(const ZydisDecodedOperand& o) const;
  void branch_on(std::vector<PlaceRange> decides) {
    flow_.branch = true;
    flow_.decides = std::move(decides);
  }

  void add_addresses();
  void add_address(ZydisRegister reg);
  void approximate();
  void summarise();

  const DecodedInstruction& info_;
  ValueFlow flow_;
  ZydisDecodedInstruction instruction_{};
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands_{};
};

}  // namespace citcat::flow
