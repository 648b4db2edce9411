#pragma once
// Which handler executes an operation: a table for each policy and mode.

#include <array>
#include <cstdint>

#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/policy.h"
#include "x86/decode/operation.h"

namespace citcat::fast {

// The words that the column `fast` of opcodes.def may have: ONE(word, way, row). `way` is one of
// fast_forms.h, and `row` belongs to the first form that operands may have. With EACH, each
// operation has a row of its own, in the order of opcodes.def. `o` is the operation.
#define FAST_WORDS(ONE, EACH)                                             \
  ONE(no, elsewhere, 0)                                                   \
  EACH(alu, alu, kAluWithRegister)                                        \
  EACH(unary, operands, kUnaryRow)                                        \
  EACH(shift, shift, kShiftByNumber)                                      \
  EACH(double_shift, double_shift, kDoubleShiftByNumber)                  \
  EACH(accumulate, operands, kAccumulatorRow)                             \
  ONE(multiply, multiply, kMultiply)                                      \
  ONE(extend, extend, o == Operation::movzx ? kExtendZero : kExtendSign)  \
  ONE(extend_ax, extend_accumulator, kExtendSign)                         \
  ONE(extend_into_dx, word, kExtendIntoDx)                                \
  ONE(lea, lea, kLea)                                                     \
  EACH(set_if, operands, kSetIf)                                          \
  EACH(move_if, operands, kMoveIf)                                        \
  EACH(jump_if, jump, kJumpIf)                                            \
  EACH(test_bit, test_bit, kTestBitOfRegister)                            \
  EACH(scan, operands, kScan)                                             \
  ONE(exchange, operands, kExchange)                                      \
  ONE(exchange_ax, exchange_accumulator, kExchange)                       \
  ONE(exchange_add, operands, kExchangeAdd)                               \
  ONE(compare_exchange, operands, kCompareExchange)                       \
  ONE(compare_exchange_pair, compare_exchange_pair, kCompareExchangePair) \
  ONE(swap_bytes, operands, kSwapBytes)                                   \
  ONE(translate_byte, translate_byte, kTranslateByte)                     \
  EACH(change_flag, nothing, kChangeFlag)                                 \
  ONE(load_ah, nothing, kLoadAh)                                          \
  ONE(store_ah, nothing, kStoreAh)                                        \
  ONE(read_selector, operands, kReadSelector)                             \
  ONE(vector, vector, kVector)                                            \
  ONE(nothing, nothing, kNothing)                                         \
  ONE(push, push, kPush)                                                  \
  ONE(push_segment, push_segment, kPushSegment)                           \
  ONE(push_flags, stacked_flags, kPushFlags)                              \
  ONE(push_all, stacked_all, kPushAll)                                    \
  ONE(pop, pop, kPop)                                                     \
  ONE(pop_flags, stacked_flags, kPopFlags)                                \
  ONE(pop_all, stacked_all, kPopAll)                                      \
  ONE(leave_frame, leave_frame, kLeaveFrame)                              \
  ONE(jump, jump, kJump)                                                  \
  ONE(jump_indirect, jump_indirect, kJumpIndirect)                        \
  EACH(loop, loop, kLoopRow)                                              \
  ONE(call, call, kCall)                                                  \
  ONE(call_indirect, call_indirect, kCallIndirect)                        \
  ONE(ret, ret, kReturn)                                                  \
  ONE(sti, sti, kSetInterruptFlag)                                        \
  ONE(string, string, 0)

enum class FastWord : std::uint8_t {
#define CITCAT_WORD(WORD, WAY, ROW) WORD,
  FAST_WORDS(CITCAT_WORD, CITCAT_WORD)
#undef CITCAT_WORD
};

struct FastOpcode {
  FastWord word;
  Operation operation;
};
/// Has an element for each row of opcodes.def.
inline constexpr auto kFastOpcodes = std::to_array<FastOpcode>({
#define OPCODE(MAP, FIRST, COUNT, MODRM, PREFIX, OPERATION, ONE, TWO, THREE, ACCESS, REGISTERS, \
               CLASS, ACCESSES, FLAGS, PROCESSORS, TRAITS, FAST)                                \
  {FastWord::FAST, Operation::OPERATION},
#include "x86/decode/opcodes.def"
#undef OPCODE
});

/// The place of an operation among those with the same word; their number if it is none of them.
constexpr unsigned place_among(FastWord word, Operation operation, Operation* list = nullptr) {
  std::array<Operation, 16> found{};
  unsigned count = 0;
  for (const FastOpcode& row : kFastOpcodes) {
    if (row.word != word) continue;
    unsigned i = 0;
    while (i < count && found[i] != row.operation) ++i;
    if (i < count) continue;
    if (row.operation == operation) return count;
    if (list != nullptr) list[count] = row.operation;
    found[count++] = row.operation;
  }
  return count;
}

/// The operations with a word, in the order of opcodes.def, which for conditions is by number.
template <FastWord kWord>
inline constexpr auto kOperations = [] {
  constexpr auto kNone = static_cast<Operation>(0xffff);
  std::array<Operation, place_among(kWord, kNone)> list{};
  place_among(kWord, kNone, list.data());
  return list;
}();
template <FastWord kWord>
inline constexpr unsigned kCount = kOperations<kWord>.size();
inline constexpr unsigned kConditionCount = 16;  ///< as opcodes number them
static_assert(kCount<FastWord::set_if> == kConditionCount &&
              kCount<FastWord::move_if> == kConditionCount &&
              kCount<FastWord::jump_if> == kConditionCount);

/// The handlers of one operation with one kind of operands, by operand size (operand_size()). Null
/// where there is no such operation.
struct HandlerRow {
  Handler in_registers[4]{};
  /// The same with an operand in memory: in any segment, and in a flat one with all bits of the
  /// offset.
  Handler in_memory[4][2]{};
};

/// Place of 1, 2, 4 and 8 bytes in a HandlerRow.
constexpr unsigned operand_size(unsigned bytes) {
  return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
}

/// Rows of a table. After each are those of the other operations that are made alike.
enum Row : unsigned {
  // Handlers for registers, and for a memory operand.
  kAluWithRegister,
  kAluWithImmediate = kAluWithRegister + kCount<FastWord::alu>,
  kAluFromMemory = kAluWithImmediate + kCount<FastWord::alu>,
  kUnaryRow = kAluFromMemory + kCount<FastWord::alu>,
  kShiftByNumber = kUnaryRow + kCount<FastWord::unary>,
  kShiftByCl = kShiftByNumber + kCount<FastWord::shift>,
  kDoubleShiftByNumber = kShiftByCl + kCount<FastWord::shift>,
  kDoubleShiftByCl = kDoubleShiftByNumber + kCount<FastWord::double_shift>,
  kAccumulatorRow = kDoubleShiftByCl + kCount<FastWord::double_shift>,
  kMultiply = kAccumulatorRow + kCount<FastWord::accumulate>,
  kMultiplyImmediate,
  kExtendZero,                    // by operand_size() of the source
  kExtendSign = kExtendZero + 3,  // the same
  kExtendIntoDx = kExtendSign + 3,
  kLea,
  kSetIf,
  kMoveIf = kSetIf + kCount<FastWord::set_if>,
  kTestBitOfRegister = kMoveIf + kCount<FastWord::move_if>,
  kTestBitOfImmediate = kTestBitOfRegister + kCount<FastWord::test_bit>,
  kScan = kTestBitOfImmediate + kCount<FastWord::test_bit>,
  kExchange = kScan + kCount<FastWord::scan>,
  kExchangeAdd,
  kCompareExchange,
  kCompareExchangePair,
  kSwapBytes,
  kTranslateByte,
  kChangeFlag,
  kLoadAh = kChangeFlag + kCount<FastWord::change_flag>,
  kStoreAh,
  kReadSelector,
  kNothing,
  kVector,  // of registers, from memory, to memory; 16 bytes have the place of 1
  // Handlers of the stack; after each, the same for a flat stack.
  kPush = kVector + 3,
  kPushImmediate = kPush + 2,
  kPushFlags = kPushImmediate + 2,
  kPushSegment = kPushFlags + 2,
  kPushAll = kPushSegment + 2,
  kPop = kPushAll + 2,
  kPopFlags = kPop + 2,
  kPopAll = kPopFlags + 2,
  kLeaveFrame = kPopAll + 2,
  // What ends a block. First those of the stack, as above.
  kCall = kLeaveFrame + 2,
  kCallIndirect = kCall + 2,
  kReturn = kCallIndirect + 2,
  kJump = kReturn + 2,
  kJumpIndirect,
  kJumpIf,
  kLoopRow = kJumpIf + kCount<FastWord::jump_if>,  // by size of the counter
  kSetInterruptFlag = kLoopRow + kCount<FastWord::loop>,
  kFall,   // nothing transfers control
  kLeave,  // what follows is made elsewhere
  kRows
};

using HandlerTable = std::array<HandlerRow, kRows>;

/// The handlers of a policy, in 64-bit mode or elsewhere.
const HandlerTable& handlers(Policy policy, bool bits64);

}  // namespace citcat::fast
