#pragma once
// Which handler makes an operation: a table for each policy, filled in by make_handlers().

#include "replay/machine/fast/fast_state.h"

namespace citcat::fast {

/// By operand size (0: 1 byte, 1: 2, 2: 4; of words and dwords 0 and 1), and by whether the segment
/// is flat, with 32 bits of offset: 1 where it is. `stack`: the same of the stack.
struct HandlerTable {
  using BySize = Handler[3];
  using ByFlatness = Handler[2];

  Handler alu_rr[10][3], alu_ri[10][3];
  Handler alu_rm[10][3][2], alu_mr[10][3][2], alu_mi[10][3][2];
  /// [signed][to: word, dword][from: byte, word]
  Handler extend_register[2][2][2];
  Handler extend_memory[2][2][2][2];
  Handler lea[2][2];
  Handler nothing;
  Handler unary_register[4][3], unary_memory[4][3][2];
  Handler shift_register[8][3][2], shift_memory[8][3][2][2];  ///< [operation][size][by CL]
  Handler double_shift[2][2];                                 ///< [right][by CL]
  Handler accumulate_register[4][3], accumulate_memory[4][3][2];
  Handler multiply_register[2][2], multiply_memory[2][2][2];  ///< [word, dword][immediate]

  Handler push_register[2][2], push_immediate[2][2], push_flags[2][2], push_segment[2][2];
  Handler push_memory[2][2][2];  ///< [size][operand][stack]
  Handler pop_register[2][2], pop_flags[2][2], leave_frame[2][2];
  Handler pop_memory[2][2][2];
  Handler push_all[2], pop_all[2];

  Handler set_register[16], set_memory[16][2];
  Handler move_register_if[16][2], move_memory_if[16][2][2];
  Handler test_register_bit[4][2][2];    ///< [operation][size][immediate]
  Handler test_memory_bit[4][2][2][2];
  Handler scan_register[2][2], scan_memory[2][2][2];  ///< [reverse][size]
  Handler exchange_register[3], exchange_memory[3][2];
  Handler exchange_add_register[3], exchange_add_memory[3][2];
  Handler compare_exchange_register[3], compare_exchange_memory[3][2];
  Handler swap_bytes;
  Handler translate_byte[2];
  Handler extend_into_edx[2];
  Handler change_flag[6];
  Handler set_interrupt_flag, load_ah, store_ah;
  Handler read_selector[2];

  Handler jump_if[16], jump, loop[4][2];
  Handler jump_register[2], jump_memory[2][2];
  Handler call[2][2], call_register[2][2], call_memory[2][2][2];
  Handler ret[2][2];
  Handler fall, leave;
};

enum class Policy : std::uint8_t {
  plain,
  traced,
  counted,
  told,
  referenced,
  // The rest looks at what is defined.
  exact,
  exact_trapped,
  exact_traced,
  exact_counted,
  exact_told,
  logged
};
inline constexpr std::size_t kPolicies = 11;

/// The handlers of a policy.
const HandlerTable& handlers(Policy policy);

}  // namespace citcat::fast
