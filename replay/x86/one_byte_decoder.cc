// Opcode facts are from the Intel SDM vol. 2, appendix A. Orders of accesses that no manual gives
// were read off buses: the 80286's in its single-step suite, later ones in recordings
// (docs/fidelity.md).

#include <array>

#include "events/cpu_traits.h"
#include "replay/x86/instruction_decoder.h"
#include "replay/x86/operand_decoder.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

constexpr KindRow kOneByteKinds[] = {
    {{0x9b}, Kind::fwait},
    {{{0xd8, 0xdf}}, Kind::x87},
    {{0xe4, 0xe5, 0xec, 0xed}, Kind::in},
    {{0xe6, 0xe7, 0xee, 0xef}, Kind::out},
    {{0xf4}, Kind::hlt},
    {{0xfa}, Kind::cli},
    {{0xfb}, Kind::sti},
};

/// AND, OR, XOR and TEST leave AF undefined: rows 1, 4 and 6 of the arithmetic operations.
bool is_logic(unsigned operation) { return operation == 1 || operation == 4 || operation == 6; }

/// Opcodes of one byte.
class OneByteDecoder final : public InstructionDecoder {
 public:
  using InstructionDecoder::InstructionDecoder;

  void run() {
    describe();
    finish();
  }

 private:
  void describe() {
    static constexpr MemberRow<OneByteDecoder> kRows[] = {
        {{{0x00, 0x3f}}, &OneByteDecoder::decode_arithmetic_rows},
        {{{0x40, 0x5f}}, &OneByteDecoder::decode_register_rows},
        {{0x60}, &OneByteDecoder::decode_push_all},
        {{0x61}, &OneByteDecoder::decode_pop_all},
        {{0x62}, &OneByteDecoder::decode_bound},
        {{0x68, 0x6a, 0x9c}, &OneByteDecoder::decode_push},
        {{{0x6c, 0x6f}, {0xa4, 0xa7}, {0xaa, 0xaf}}, &OneByteDecoder::decode_string},
        {{{0x70, 0x7f}}, &OneByteDecoder::decode_conditional_jump},
        {{0x8e}, &OneByteDecoder::decode_mov_to_segment},
        {{0x8f}, &OneByteDecoder::decode_pop_operand},
        {{0x9a, 0xea}, &OneByteDecoder::decode_far_direct},
        {{0x9d}, &OneByteDecoder::decode_popf},
        {{0xc2, 0xc3, 0xca, 0xcb}, &OneByteDecoder::decode_return},
        {{0xc4, 0xc5}, &OneByteDecoder::decode_les_lds},
        {{0xc8}, &OneByteDecoder::decode_enter},
        {{0xc9}, &OneByteDecoder::decode_leave},
        {{{0xcc, 0xce}, 0xf1}, &OneByteDecoder::decode_interrupt},
        {{0xcf}, &OneByteDecoder::decode_iret},
        {{0xd7}, &OneByteDecoder::decode_xlat},
        {{{0xe0, 0xe3}}, &OneByteDecoder::decode_loop},
        {{0xe8, 0xe9, 0xeb}, &OneByteDecoder::decode_near_direct},
        {{0xff}, &OneByteDecoder::decode_group5},
    };
    decode_by_row(kRows, &OneByteDecoder::decode_plain_one_byte);
  }

  void decode_arithmetic_rows() {
    const unsigned opcode = info_.opcode;
    if ((opcode & 7) < 6) {
      if (is_logic(opcode >> 3)) info_.flag_rule = FlagRule::logic;
      add_explicit();
      return add_operand_eas();
    }
    switch (opcode) {
      case 0x27:
        info_.flag_rule = FlagRule::daa;
        return;
      case 0x2f:
        info_.flag_rule = FlagRule::das;
        return;
      case 0x37:
        info_.flag_rule = FlagRule::aaa;
        return;
      case 0x3f:
        info_.flag_rule = FlagRule::aas;
        return;
      default:
        break;
    }
    info_.reg_field = static_cast<std::uint8_t>(opcode >> 3 & 3);
    return (opcode & 1) == 0 ? decode_push_segment() : decode_pop_segment();
  }

  void decode_register_rows() {
    info_.rm_field = info_.opcode & 7;
    if (info_.opcode >= 0x58) {
      add_pop(word_);
      add_ea(EaSource::stack_pop);
      if (info_.rm_field == kEsp) info_.stack_delta = 0;
    } else if (info_.opcode >= 0x50) {
      decode_push();
    }
  }

  void decode_push() {
    if (info_.opcode == 0x9c) info_.kind = Kind::pushf;
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
  }

  void decode_mov_to_segment() {
    info_.kind = Kind::mov_to_segment;
    note_segment_load();
    if (add_explicit(2, true, false) != nullptr) add_ea_operand(0);
  }

  // The 80286 stores DI first, upward to AX; later machines seen store downward from the stack
  // pointer.
  void decode_push_all() {
    constexpr unsigned kRegisters = 8;
    add_ea(EaSource::stack_push, word_);
    add_push(word_, kRegisters);
    if (!cpu_traits(model_).pushes_all_upward) return;
    MemoryOperand& pushes = info_.operands[0];
    pushes.displacement = info_.stack_delta;
    pushes.stride = static_cast<std::int8_t>(word_);
  }

  // The 80286 fetches AX, the last word, before the others.
  void decode_pop_all() {
    add_ea(EaSource::stack_pop);
    if (!cpu_traits(model_).pops_ax_first) return add_pop(word_, 8);
    info_.stack_delta = 7 * word_;
    add_pop(word_);
    info_.stack_delta = 0;
    add_pop(word_, 7);
    info_.stack_delta = 8 * word_;
  }

  void decode_bound() {
    info_.kind = Kind::bound;
    MemoryOperand* bounds = add_explicit(word_, true, false);
    if (bounds == nullptr) return;
    bounds->count = 2;
    bounds->stride = static_cast<std::int8_t>(word_);
    add_ea_operand(0);
  }

  void decode_pop_operand() {
    add_pop(word_);
    if (info_.register_form) {
      if (info_.rm_field == kEsp) info_.stack_delta = 0;
      return add_ea(EaSource::stack_pop);
    }
    MemoryOperand* destination = add_explicit(word_, false, true);
    if (destination == nullptr) return;
    if (destination->base == kEsp) destination->kind = OperandKind::address_after_pop;
    add_ea_operand(1);
  }

  void decode_far_direct() {
    info_.kind = info_.opcode == 0x9a ? Kind::far_call : Kind::far_jump;
    add_ea(EaSource::target);
    if (info_.kind == Kind::far_jump) return;
    add_ea(EaSource::stack_push, word_);
    add_push(word_, 2);
  }

  void decode_popf() {
    info_.kind = Kind::popf;
    add_pop(word_);
    add_ea(EaSource::stack_pop);
  }

  void decode_return() {
    const bool far = info_.opcode >= 0xca;
    info_.kind = far ? Kind::far_return : Kind::ret;
    add_pop(word_, far ? 2 : 1);
    add_ea(EaSource::stack_pop);
    if ((info_.opcode & 1) == 0) info_.stack_delta += static_cast<std::int32_t>(info_.immediate);
  }

  void decode_les_lds() { decode_load_far_pointer(info_.opcode == 0xc4 ? kEs : kDs); }

  // PUSH EBP; then for a nesting level L > 0, L-1 frame pointers copied from below EBP and the new
  // frame pointer pushed; then room for locals (SDM vol. 2, ENTER).
  void decode_enter() {
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
    const unsigned level = static_cast<unsigned>(decoded_.raw.imm[1].value.u) & 31;
    if (level > 1) {
      MemoryOperand display;
      display.kind = OperandKind::frame;
      display.width = AddressWidth::stack;
      display.segment = kSs;
      display.base = kEbp;
      display.displacement = -static_cast<std::int32_t>(word_);
      display.size = word_;
      display.count = static_cast<std::uint8_t>(level - 1);
      display.stride = static_cast<std::int8_t>(-static_cast<int>(word_));
      display.read = true;
      display.interleaved = true;
      add(display);
      add_push(word_, level - 1);
    }
    if (level > 0) add_push(word_);
    info_.stack_delta -= static_cast<std::int32_t>(info_.immediate);
  }

  void decode_leave() {
    MemoryOperand operand;
    operand.kind = OperandKind::frame;
    operand.width = AddressWidth::stack;
    operand.segment = kSs;
    operand.base = kEbp;
    operand.size = word_;
    operand.read = true;
    add(operand);
    add_ea(EaSource::frame);
  }

  void decode_interrupt() {
    switch (info_.opcode) {
      case 0xcc:
        info_.kind = Kind::int3;
        break;
      case 0xcd:
        info_.kind = Kind::int_n;
        break;
      case 0xce:
        info_.kind = Kind::into;
        break;
      default:
        info_.kind = Kind::icebp;
    }
    add_ea(EaSource::stack_push, word_);
  }

  // The 80286 reads FLAGS, IP, CS (its bus in the single-step suite); later machines seen read
  // upward in real mode and FLAGS, CS, EIP in protected mode.
  void decode_iret() {
    info_.kind = Kind::iret;
    add_ea(EaSource::stack_pop);
    if (cpu_traits(model_).returns_flags_first) {
      info_.stack_delta = 2 * word_;
      add_pop(word_);
      info_.stack_delta = 0;
      add_pop(word_, 2);
      info_.stack_delta = 3 * word_;
      return;
    }
    add_pop(word_, 3);
    if (info_.real_or_v86) return;
    info_.operands[0].displacement = 2 * word_;
    info_.operands[0].stride = static_cast<std::int8_t>(-static_cast<int>(word_));
  }

  void decode_xlat() {
    MemoryOperand operand;
    operand.kind = OperandKind::table;
    operand.width = address_width();
    operand.segment = override_or(kDs);
    operand.base = kEbx;
    operand.size = 1;
    operand.read = true;
    add(operand);
    add_ea_operand(0);
  }

  void decode_near_direct() {
    info_.kind = info_.opcode == 0xe8 ? Kind::call : Kind::jump;
    add_ea(EaSource::target);
    if (info_.kind == Kind::jump) return;
    add_ea(EaSource::stack_push, word_);
    add_push(word_);
  }

  void decode_loop() {
    info_.kind = Kind::loop;
    add_ea(EaSource::target);
  }

  void decode_group5() {
    switch (info_.reg_field) {
      case 2:
        return decode_indirect_call();
      case 3:
        info_.kind = Kind::far_call;
        info_.indirect = true;
        add_far_pointer(false);
        add_ea_operand(0);
        add_ea(EaSource::stack_push, word_);
        return add_push(word_, 2);
      case 4:
        info_.kind = Kind::jump;
        info_.indirect = true;
        return add_indirect_ea();
      case 5:
        info_.kind = Kind::far_jump;
        info_.indirect = true;
        add_far_pointer(false);
        return add_ea_operand(0);
      case 6:
        add_ea(EaSource::stack_push, word_);
        if (add_explicit(word_, true, false) != nullptr) add_ea_operand(0);
        return add_push(word_);
      default:
        return decode_plain_one_byte();
    }
  }

  void decode_indirect_call() {
    info_.kind = Kind::call;
    info_.indirect = true;
    add_ea(EaSource::stack_push, word_);
    add_indirect_ea();
    add_push(word_);
  }

  void add_indirect_ea() {
    if (add_explicit(word_, true, false) != nullptr) return add_ea_operand(0);
    add_ea(EaSource::reg, info_.rm_field);
  }

  void decode_string() {
    const unsigned opcode = info_.opcode;
    const unsigned size = (opcode & 1) == 0 ? 1 : word_;
    info_.operand_bytes = static_cast<std::uint8_t>(size);
    info_.kind = Kind::string;
    note_repeat();
    switch (opcode & 0xfe) {
      case 0x6c:
        info_.kind = Kind::ins;
        add_string(false, size, true);
        break;
      case 0x6e:
        info_.kind = Kind::outs;
        add_string(true, size, false);
        break;
      case 0xa4:
        add_string(true, size, false);
        add_string(false, size, true);
        break;
      case 0xa6:
        return decode_compare_strings(size);
      case 0xaa:
        add_string(false, size, true);
        break;
      case 0xac:
        add_string(true, size, false);
        break;
      default:
        add_string(false, size, false);
        break;  // SCAS
    }
    for (unsigned i = 0; i < info_.operand_count; ++i) add_ea_operand(i);
  }

  // The 80286 reads ES:DI before DS:SI (seen on its bus in every CMPS of the single-step suite that
  // faults); KT lists the source first in any case.
  void decode_compare_strings(unsigned size) {
    const bool destination_first = cpu_traits(model_).compares_destination_first;
    add_string(!destination_first, size, false);
    add_string(destination_first, size, false);
    add_ea_operand(destination_first ? 1 : 0);
    add_ea_operand(destination_first ? 0 : 1);
  }

  void note_repeat() {
    for (unsigned i = 0; i < info_.prefix_bytes; ++i) {
      if (info_.bytes[i] == 0xf3) info_.repeat = RepeatPrefix::rep;
      if (info_.bytes[i] == 0xf2) info_.repeat = RepeatPrefix::repne;
    }
  }

  /// Everything whose only memory operand is the explicit one.
  void decode_plain_one_byte() {
    const unsigned opcode = info_.opcode;
    MemoryOperand* operand = nullptr;
    if (opcode != 0x8d) operand = add_explicit();  // LEA computes an address, no more
    info_.kind = find_kind(kOneByteKinds, opcode).value_or(Kind::plain);
    info_.shadows_interrupts = info_.kind == Kind::sti;
    set_one_byte_flag_rule();
    if (operand == nullptr) return;
    add_ea_operand(0);
    if (opcode == 0x8c) operand->size = 2;  // MOV m, Sreg
    // ARPL writes when it adjusts; shifts by CL or an immediate when the count is not zero.
    constexpr OpcodeSet kConditional = {0x63, 0xc0, 0xc1, 0xd2, 0xd3};
    operand->conditional_write = kConditional.has(opcode);
  }

  void set_one_byte_flag_rule() {
    constexpr OpcodeSet kGroup1 = {0x80, 0x81, 0x83};
    constexpr OpcodeSet kTest = {0x84, 0x85, 0xa8, 0xa9};
    constexpr OpcodeSet kShifts = {0xc0, 0xc1, {0xd0, 0xd3}};
    const unsigned opcode = info_.opcode;
    if (kTest.has(opcode)) info_.flag_rule = FlagRule::logic;
    if (kGroup1.has(opcode) && is_logic(info_.reg_field)) info_.flag_rule = FlagRule::logic;
    if (opcode == 0x69 || opcode == 0x6b) info_.flag_rule = FlagRule::imul_two_operand;
    if (opcode == 0xd4) info_.flag_rule = FlagRule::aam;
    if (opcode == 0xd5) info_.flag_rule = FlagRule::aad;
    if (opcode == 0xf6 || opcode == 0xf7) set_group3_flags();
    // /6 shifts left from the 286 on; the 8088 sets all bits.
    const bool sets_bits = cpu_traits(model_).shift_6_sets_bits && info_.reg_field == 6;
    if (kShifts.has(opcode) && !sets_bits) set_shift_flags();
  }

  void set_shift_flags() {
    constexpr std::array<FlagRule, 8> kRules = {
        FlagRule::rotate_left,        FlagRule::rotate_right,    FlagRule::rotate_carry_left,
        FlagRule::rotate_carry_right, FlagRule::shift_left,      FlagRule::shift_right,
        FlagRule::shift_left,         FlagRule::shift_arithmetic};
    info_.flag_rule = kRules[info_.reg_field];
  }

  void set_group3_flags() {
    constexpr std::array<FlagRule, 8> kRules = {FlagRule::logic, FlagRule::logic, FlagRule::none,
                                                FlagRule::none,  FlagRule::mul,   FlagRule::imul,
                                                FlagRule::div,   FlagRule::idiv};
    info_.flag_rule = kRules[info_.reg_field];
  }
};

}  // namespace

void decode_one_byte(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands) {
  OneByteDecoder(info, model, decoded, operands).run();
}

}  // namespace citcat
