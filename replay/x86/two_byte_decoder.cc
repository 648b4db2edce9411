// Opcode facts are from the Intel SDM vol. 2, appendix A. Orders of accesses that no manual gives
// were read off buses: the 80286's in its single-step suite, later ones in recordings
// (docs/fidelity.md).

#include "replay/x86/instruction_decoder.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

/// What FXSAVE and FXRSTOR touch of their 512-byte area outside 64-bit mode: header, eight x87 and
/// eight XMM registers (SDM vol. 1, table 10-2). The rest is reserved or the program's own.
constexpr unsigned kFxBytes = 32 + 8 * 16 + 8 * 16;

constexpr KindRow kTwoByteKinds[] = {
    {{0x06}, Kind::clts},
    {{0x08, 0x09}, Kind::cache_flush},
    {{0x20}, Kind::mov_from_cr},
    {{0x21}, Kind::mov_from_dr},
    {{0x22}, Kind::mov_to_cr},
    {{0x23}, Kind::mov_to_dr},
    {{0x24, 0x26}, Kind::mov_test_register},
    {{0x30}, Kind::wrmsr},
    {{0x31}, Kind::rdtsc},
    {{0x32}, Kind::rdmsr},
    {{0x33}, Kind::rdpmc},
    {{0x34}, Kind::sysenter},
    {{0x35}, Kind::sysexit},
    {{0x77}, Kind::emms},
    {{0xa2}, Kind::cpuid},
    {{0xaa}, Kind::rsm},
};

/// Opcodes behind 0F, and those behind 0F 38 and 0F 3A.
class TwoByteDecoder final : public InstructionDecoder {
 public:
  using InstructionDecoder::InstructionDecoder;

  void run() {
    if (info_.opcode_map == 1) {
      describe();
    } else {
      add_explicit();
      classify_vector();
    }
    finish();
  }

 private:
  void describe() {
    static constexpr MemberRow<TwoByteDecoder> kRows[] = {
        {{0x00, 0x01}, &TwoByteDecoder::decode_system_group},
        {{0x02, 0x03}, &TwoByteDecoder::decode_lar_lsl},
        {{0x0d, {0x18, 0x1f}}, &TwoByteDecoder::decode_hint},
        {{{0x80, 0x8f}}, &TwoByteDecoder::decode_conditional_jump},
        {{0xa0, 0xa8}, &TwoByteDecoder::decode_push_fs_gs},
        {{0xa1, 0xa9}, &TwoByteDecoder::decode_pop_fs_gs},
        {{0xa3, 0xab, 0xb3, 0xbb}, &TwoByteDecoder::decode_bit_string},
        {{0xae}, &TwoByteDecoder::decode_group15},
        {{0xb2, 0xb4, 0xb5}, &TwoByteDecoder::decode_lss_lfs_lgs},
        {{0xf7}, &TwoByteDecoder::decode_masked_move},
    };
    if (const std::optional<Kind> kind = find_kind(kTwoByteKinds, info_.opcode)) {
      info_.kind = *kind;
      return;
    }
    decode_by_row(kRows, &TwoByteDecoder::decode_plain_two_byte);
  }

  void decode_lar_lsl() {
    add_explicit(2, true, false);
    add_operand_eas();
  }

  void decode_hint() {}  // prefetches and no-operations: no access

  void decode_push_fs_gs() {
    info_.reg_field = info_.opcode < 0xa8 ? kFs : kGs;
    decode_push_segment();
  }

  void decode_pop_fs_gs() {
    info_.reg_field = info_.opcode < 0xa8 ? kFs : kGs;
    decode_pop_segment();
  }

  void decode_lss_lfs_lgs() {
    decode_load_far_pointer(info_.opcode == 0xb2 ? kSs : info_.opcode == 0xb4 ? kFs : kGs);
  }

  void decode_system_group() {
    const unsigned reg = info_.reg_field;
    if (info_.opcode == 0x00) {
      if (reg == 2) info_.kind = Kind::lldt;
      if (reg == 3) info_.kind = Kind::ltr;
      add_explicit(2, reg >= 2, reg < 2);
      return add_operand_eas();
    }
    if (reg == 7) {
      info_.kind = Kind::invlpg;
      add_explicit(1, false, false);  // names a page, touches nothing
      return;
    }
    if (reg < 4) {
      if (reg == 2) info_.kind = Kind::lgdt;
      if (reg == 3) info_.kind = Kind::lidt;
      add_explicit(6, reg >= 2, reg < 2);
    } else {
      if (reg == 6) info_.kind = Kind::lmsw;
      if (reg == 4 && info_.register_form && info_.operand_bytes == 4) info_.kind = Kind::smsw;
      add_explicit(2, reg == 6, reg == 4);
    }
    add_operand_eas();
  }

  void decode_group15() {
    if (info_.register_form) return;  // fences
    switch (info_.reg_field) {
      case 0:
        info_.kind = Kind::fxsave;
        add_explicit(kFxBytes, false, true);
        break;
      case 1:
        info_.kind = Kind::fxrstor;
        add_explicit(kFxBytes, true, false);
        break;
      case 2:
        info_.kind = Kind::ldmxcsr;
        add_explicit(4, true, false);
        break;
      case 3:
        info_.kind = Kind::stmxcsr;
        add_explicit(4, false, true);
        break;
      default:
        break;  // CLFLUSH: no data
    }
    add_operand_eas();
  }

  void decode_bit_string() {
    info_.flag_rule = FlagRule::bit_test;
    MemoryOperand* operand = add_explicit(word_, true, info_.opcode != 0xa3);
    if (operand == nullptr) return;
    operand->kind = OperandKind::bit_string;
    operand->bit_register = static_cast<std::int8_t>(info_.reg_field);
    add_ea_operand(0);
  }

  void decode_masked_move() {
    info_.kind = info_.mandatory_prefix == 0x66 ? Kind::sse : Kind::mmx;
    MemoryOperand operand;
    operand.kind = OperandKind::string_destination;
    operand.width = address_width();
    operand.segment = override_or(kDs);
    operand.base = kEdi;
    operand.size = info_.mandatory_prefix == 0x66 ? 16 : 8;
    operand.write = true;
    operand.conditional_write = true;
    add(operand);
    add_ea_operand(0);
  }

  void decode_plain_two_byte() {
    constexpr OpcodeSet kDoubleShifts = {0xa4, 0xa5, 0xac, 0xad};
    // CMPXCHG and CMPXCHG8B write in either case: the old value back when unequal.
    constexpr OpcodeSet kExchanges = {0xb0, 0xb1, 0xc7};
    const unsigned opcode = info_.opcode;
    MemoryOperand* operand = add_explicit();
    if (kDoubleShifts.has(opcode)) info_.flag_rule = FlagRule::double_shift;
    if (opcode == 0xaf) info_.flag_rule = FlagRule::imul_two_operand;
    if (opcode == 0xba) info_.flag_rule = FlagRule::bit_test;
    if (opcode == 0xbc || opcode == 0xbd) info_.flag_rule = FlagRule::bit_scan;
    if (operand != nullptr) {
      operand->conditional_write = kDoubleShifts.has(opcode);
      if (kExchanges.has(opcode)) operand->read = operand->write = true;
      add_ea_operand(0);
    }
    classify_vector();
  }
};

}  // namespace

void decode_two_byte(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands) {
  TwoByteDecoder(info, model, decoded, operands).run();
}

}  // namespace citcat
