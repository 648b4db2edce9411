#pragma once
// Which handler makes an operation: a table for each policy and mode, put together from three.

#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/policy.h"

namespace citcat::fast {

// All are by operand size (0: 1 byte, 1: 2, 2: 4, 3: 8; of words, dwords and quadwords 0 to 2), and
// where there are two of a kind by whether the segment is flat, with all bits of offset: 1 where it
// is. `stack`: the same of the stack. Null where there is no such operation.

/// What works on registers alone: one table.
struct RegisterHandlers {
  Handler alu_rr[10][4], alu_ri[10][4];
  /// [signed][to: word, dword, quadword][from: byte, word, dword]
  Handler extend_register[2][3][3];
  Handler nothing;
  Handler unary_register[4][4];
  Handler shift_register[8][4][2];   ///< [operation][size][by CL]
  Handler double_shift[3][2][2];     ///< [size][right][by CL]
  Handler accumulate_register[4][4];
  Handler multiply_register[3][2];   ///< [size][immediate]
  Handler set_register[16];
  Handler move_register_if[16][3];
  Handler test_register_bit[4][3][2];  ///< [operation][size][immediate]
  Handler scan_register[2][3];         ///< [reverse][size]
  Handler exchange_register[4], exchange_add_register[4], compare_exchange_register[4];
  Handler swap_bytes[3];
  Handler extend_into_edx[3];
  Handler change_flag[6];
  Handler load_ah, store_ah;
  Handler read_selector[3];
};

/// What has addresses: a table for each AccessNotes, exact or not, and mode. What is rare takes any
/// segment as one that is not flat.
struct MemoryHandlers {
  Handler alu_rm[10][4][2], alu_mr[10][4][2], alu_mi[10][4][2];
  Handler extend_memory[2][3][3][2];
  Handler lea[3][2];
  Handler unary_memory[4][4][2];
  Handler shift_memory[8][4][2];  ///< [operation][size][by CL]
  Handler accumulate_memory[4][4];
  Handler multiply_memory[3][2][2];  ///< [size][immediate]

  Handler push_register[3][2], push_immediate[3][2], push_flags[3][2], push_segment[3][2];
  Handler push_memory[3][2][2];  ///< [size][operand][stack]
  Handler pop_register[3][2], pop_memory[3][2], pop_flags[3][2], leave_frame[3][2];
  Handler push_all[2], pop_all[2];

  Handler set_memory[16];
  Handler move_memory_if[16][3][2];
  Handler test_memory_bit[4][3][2];  ///< [operation][size][immediate]
  Handler scan_memory[2][3];         ///< [reverse][size]
  Handler exchange_memory[4], exchange_add_memory[4], compare_exchange_memory[4];
  Handler compare_exchange_pair;  ///< CMPXCHG8B
  Handler translate_byte;
};

/// What ends a block: a table for each policy and mode.
struct FlowHandlers {
  Handler jump_if[16], jump, loop[4][3];
  Handler jump_register[3], jump_memory[3][2];
  Handler call[3][2], call_register[3][2], call_memory[3][2][2];
  Handler ret[3][2];
  Handler set_interrupt_flag;
  Handler fall, leave;
};

struct HandlerTable : RegisterHandlers, MemoryHandlers, FlowHandlers {};

/// The handlers of a policy, in 64-bit mode or elsewhere.
const HandlerTable& handlers(Policy policy, bool bits64);

}  // namespace citcat::fast
