#pragma once
// What the descriptions of all opcode maps have in common. Private to the decoder.

#include <optional>

#include "replay/x86/opcode_set.h"
#include "replay/x86/operand_list.h"

namespace citcat {

/// Kinds that follow from the opcode alone and have at most an explicit operand.
struct KindRow {
  OpcodeSet opcodes;
  InstructionClass kind;
};

template <std::size_t N>
std::optional<InstructionClass> find_kind(const KindRow (&rows)[N], unsigned opcode) {
  for (const KindRow& row : rows) {
    if (row.opcodes.has(opcode)) return row.kind;
  }
  return std::nullopt;
}

/// Builds the operands, classes and KT rules of an instruction.
class InstructionDecoder : public OperandList {
 public:
  using OperandList::OperandList;

 protected:
  using Kind = InstructionClass;

  template <class Describer>
  struct MemberRow {
    OpcodeSet opcodes;
    void (Describer::*describe)();
  };
  /// Calls the member of the row that has the opcode.
  template <class Describer, std::size_t N>
  void decode_by_row(const MemberRow<Describer> (&rows)[N], void (Describer::*otherwise)()) {
    for (const MemberRow<Describer>& row : rows) {
      if (row.opcodes.has(info_.opcode)) {
        otherwise = row.describe;
        break;
      }
    }
    (static_cast<Describer*>(this)->*otherwise)();
  }

  void decode_push_segment();
  void decode_pop_segment();
  void note_segment_load();
  void decode_load_far_pointer(SegmentRegister segment);
  void decode_conditional_jump() {
    info_.kind = Kind::jcc;
    add_ea(EaSource::target);
  }
  /// Vector instructions: which they are, by their registers.
  void classify_vector();
  /// To be called last.
  void finish();
};

// Complete `info`, of one map each.
void decode_one_byte(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands);
void decode_two_byte(DecodedInstruction& info, CpuModel model,
                     const ZydisDecodedInstruction& decoded,
                     std::span<const ZydisDecodedOperand> operands);

}  // namespace citcat
