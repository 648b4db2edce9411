#pragma once
// How the fast tier executes the instructions of a row in the table of opcodes: the column `fast`.

#include <cstdint>

#include "replay/machine/fast/handler_table.h"
#include "x86/decode/opcode_row.h"

namespace citcat::fast {

/// What an instruction needs besides its operands (Lowering).
enum class Way : std::uint8_t {
  elsewhere,  ///< it is not made by the tier
  operands,   ///< nothing
  // The row of handlers depends on the operands.
  alu,
  shift,
  double_shift,
  multiply,
  extend,
  test_bit,
  extend_accumulator,
  // Operands are not those of the row.
  word,  ///< there are none, but it has the size of a word
  lea,
  push,
  push_segment,
  pop,
  stacked_flags,
  stacked_all,
  leave_frame,
  exchange_accumulator,
  compare_exchange_pair,
  translate_byte,
  vector,
  nothing,
  // The block ends.
  jump,
  jump_indirect,
  loop,
  call,
  call_indirect,
  ret,
  sti,
  string,
};

struct FastForm {
  Way way = Way::elsewhere;
  std::uint8_t row = 0;  ///< Row, that of the first form that the operands may have
};
static_assert(kRows <= 256);

/// The form of a row of opcode_rows().
FastForm fast_form(const OpcodeRow& row);

}  // namespace citcat::fast
