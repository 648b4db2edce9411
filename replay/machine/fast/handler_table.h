#pragma once
// Which handler makes an operation: a table for each policy, filled in by make_handlers().

#include "replay/machine/fast/fast_state.h"

namespace citcat::fast {

/// By operand size (0: 1 byte, 1: 2, 2: 4, 3: 8; of words, dwords and quadwords 0 to 2), and by
/// whether the segment is flat, with all bits of offset: 1 where it is. `stack`: the same of the
/// stack. Null where there is no such operation.
struct HandlerTable {
  Handler alu_rr[10][4], alu_ri[10][4];
  Handler alu_rm[10][4][2], alu_mr[10][4][2], alu_mi[10][4][2];
  /// [signed][to: word, dword, quadword][from: byte, word, dword]
  Handler extend_register[2][3][3];
  Handler extend_memory[2][3][3][2];
  Handler lea[3][2];
  Handler nothing;
  Handler unary_register[4][4], unary_memory[4][4][2];
  Handler shift_register[8][4][2], shift_memory[8][4][2][2];  ///< [operation][size][by CL]
  Handler double_shift[3][2][2];                              ///< [size][right][by CL]
  Handler accumulate_register[4][4], accumulate_memory[4][4][2];
  Handler multiply_register[3][2], multiply_memory[3][2][2];  ///< [size][immediate]

  Handler push_register[3][2], push_immediate[3][2], push_flags[3][2], push_segment[3][2];
  Handler push_memory[3][2][2];  ///< [size][operand][stack]
  Handler pop_register[3][2], pop_flags[3][2], leave_frame[3][2];
  Handler pop_memory[3][2][2];
  Handler push_all[2], pop_all[2];

  Handler set_register[16], set_memory[16][2];
  Handler move_register_if[16][3], move_memory_if[16][3][2];
  Handler test_register_bit[4][3][2];  ///< [operation][size][immediate]
  Handler test_memory_bit[4][3][2][2];
  Handler scan_register[2][3], scan_memory[2][3][2];  ///< [reverse][size]
  Handler exchange_register[4], exchange_memory[4][2];
  Handler exchange_add_register[4], exchange_add_memory[4][2];
  Handler compare_exchange_register[4], compare_exchange_memory[4][2];
  Handler compare_exchange_pair[2];  ///< [flat]; of CMPXCHG8B
  Handler swap_bytes[3];
  Handler translate_byte[2];
  Handler extend_into_edx[3];
  Handler change_flag[6];
  Handler set_interrupt_flag, load_ah, store_ah;
  Handler read_selector[3];

  Handler jump_if[16], jump, loop[4][3];
  Handler jump_register[3], jump_memory[3][2];
  Handler call[3][2], call_register[3][2], call_memory[3][2][2];
  Handler ret[3][2];
  Handler fall, leave;
};

enum class Policy : std::uint8_t {
  plain,
  traced,
  counted,
  trailed,
  stored,
  stored_trailed,
  told,
  referenced,
  // The rest looks at what is defined.
  exact,
  exact_trapped,
  exact_traced,
  exact_counted,
  exact_trailed,
  exact_told,
  logged
};
inline constexpr std::size_t kPolicies = 15;

/// Blocks are told each time they have run, one by one.
constexpr bool is_told(Policy policy) {
  return policy == Policy::told || policy == Policy::exact_told;
}
/// What blocks access is kept.
constexpr bool is_logged(Policy policy) {
  return policy == Policy::referenced || policy == Policy::logged;
}
/// The last blocks are kept.
constexpr bool is_trailed(Policy policy) {
  return policy == Policy::trailed || policy == Policy::stored_trailed ||
         policy == Policy::exact_trailed;
}
/// Each block counts how often it ran.
constexpr bool is_counted(Policy policy) {
  return is_trailed(policy) || policy == Policy::counted || policy == Policy::exact_counted;
}
/// Of blocks that somebody is told of, or nobody listens to.
constexpr Policy usual_policy(bool compares, bool listens, bool references) {
  if (references) return compares ? Policy::logged : Policy::referenced;
  if (compares) return listens ? Policy::exact_told : Policy::exact;
  return listens ? Policy::told : Policy::plain;
}

/// The handlers of a policy, in 64-bit mode or elsewhere.
const HandlerTable& handlers(Policy policy, bool bits64);

}  // namespace citcat::fast
