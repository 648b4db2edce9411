#include "replay/x86/instruction_decoder.h"

#include "events/cpu_traits.h"
#include "replay/x86/opcode_support.h"

namespace citcat {
namespace {

using Kind = InstructionClass;

/// Rows of the 0F map that compute on floating point, whatever the mandatory prefix: conversions,
/// comparisons, square root and approximations, arithmetic, and the SSE3 horizontal forms.
bool is_sse_arithmetic(unsigned opcode) {
  constexpr OpcodeSet kArithmetic = {0x2a, {0x2c, 0x2f}, {0x51, 0x53}, {0x58, 0x5f}, 0x7c,
                                     0x7d, 0xc2,         0xd0,         0xe6};
  return kArithmetic.has(opcode);
}

bool transfers_control(Kind kind) {
  return (kind >= Kind::jcc && kind <= Kind::icebp) || kind == Kind::sysenter ||
         kind == Kind::sysexit || kind == Kind::rsm || kind == Kind::loadall;
}

/// Input and output, HLT, and everything that changes how the next instruction executes.
bool must_be_last(Kind kind) {
  return (kind >= Kind::ins && kind <= Kind::hlt) || kind == Kind::mov_to_cr ||
         (kind >= Kind::mov_to_dr && kind <= Kind::sti && kind != Kind::mov_from_dr) ||
         kind == Kind::popf;
}

}  // namespace

// A 32-bit PUSH of a segment register moves ESP by four and writes only the two bytes of the
// selector (SDM vol. 2, PUSH: "the segment selector is written on the stack using a 16-bit
// move"); the upper half of the slot keeps what it held.
void InstructionDecoder::decode_push_segment() {
  info_.kind = Kind::push_segment;
  add_ea(EaSource::stack_push, word_);
  add_push(word_, 1, 2);
}

void InstructionDecoder::decode_pop_segment() {
  info_.kind = Kind::pop_segment;
  add_pop(word_, 1, 2);
  add_ea(EaSource::stack_pop);
  note_segment_load();
}

void InstructionDecoder::note_segment_load() {
  info_.shadows_interrupts = info_.reg_field == kSs || cpu_traits(model_).segment_loads_shadow;
  info_.control_flow = info_.reg_field == kCs;
  info_.ends_block = info_.shadows_interrupts || info_.control_flow;
}

void InstructionDecoder::decode_load_far_pointer(SegmentRegister segment) {
  info_.kind = Kind::load_far_pointer;
  // LDS and its like read the offset first on the 80286's bus (single-step suite, C4 and C5); the
  // later machines seen read the selector first.
  const bool selector_first = !is_16_bit_processor(model_);
  add_far_pointer(selector_first);
  add_ea_operand(selector_first ? 1 : 0);
  const std::uint8_t reg = info_.reg_field;
  info_.rm_field = reg;  // the general register; the address is in the operands
  info_.reg_field = segment;
  info_.shadows_interrupts = segment == kSs;
  info_.ends_block = info_.shadows_interrupts;
}

void InstructionDecoder::classify_vector() {
  if (info_.opcode_map == 1 && is_sse_arithmetic(info_.opcode)) {
    info_.kind = Kind::sse_fp;
    return;
  }
  for (const ZydisDecodedOperand& operand : zydis_operands_) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    const ZydisRegisterClass cls = ZydisRegisterGetClass(operand.reg.value);
    if (cls == ZYDIS_REGCLASS_MMX) {
      info_.kind = Kind::mmx;
      return;
    }
    if (cls == ZYDIS_REGCLASS_XMM) info_.kind = Kind::sse;
  }
}

void InstructionDecoder::finish() {
  if (transfers_control(info_.kind)) {
    info_.control_flow = true;
    info_.operand_bytes = word_;
  }
  if (info_.control_flow || info_.is_repeated() || must_be_last(info_.kind)) {
    info_.ends_block = true;
  }
}

}  // namespace citcat
