#pragma once
// Which handler executes an operation: a table for each policy and mode.

#include <array>

#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/lazy_alu.h"
#include "replay/machine/fast/policy.h"

namespace citcat::fast {

// Operations that are made alike, each in the order of its handlers. Alu is in lazy_alu.h.
enum Unary : unsigned { kInc, kDec, kNot, kNeg, kUnaryCount };
enum Shift : unsigned { kRol, kRor, kRcl, kRcr, kShl, kShr, kSar, kShiftCount };
enum Accumulator : unsigned { kMul, kImul, kDiv, kIdiv, kAccumulatorCount };
enum BitTest : unsigned { kBt, kBts, kBtr, kBtc, kBitTestCount };
enum FlagOperation : unsigned { kClc, kStc, kCmc, kCld, kStd, kCli, kFlagOperationCount };
enum Loop : unsigned { kLoopne, kLoope, kLoop, kJcxz, kLoopCount };
inline constexpr unsigned kConditionCount = 16;  ///< as opcodes number them

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
  kAluWithImmediate = kAluWithRegister + kAluCount,
  kAluFromMemory = kAluWithImmediate + kAluCount,
  kUnaryRow = kAluFromMemory + kAluCount,
  kShiftByNumber = kUnaryRow + kUnaryCount,
  kShiftByCl = kShiftByNumber + kShiftCount,
  kDoubleShiftByNumber = kShiftByCl + kShiftCount,  // to the left, to the right
  kDoubleShiftByCl = kDoubleShiftByNumber + 2,      // the same
  kAccumulatorRow = kDoubleShiftByCl + 2,
  kMultiply = kAccumulatorRow + kAccumulatorCount,
  kMultiplyImmediate,
  kExtendZero,                    // by operand_size() of the source
  kExtendSign = kExtendZero + 3,  // the same
  kExtendIntoDx = kExtendSign + 3,
  kLea,
  kSetIf,
  kMoveIf = kSetIf + kConditionCount,
  kTestBitOfRegister = kMoveIf + kConditionCount,
  kTestBitOfImmediate = kTestBitOfRegister + kBitTestCount,
  kScan = kTestBitOfImmediate + kBitTestCount,  // forwards, in reverse
  kExchange = kScan + 2,
  kExchangeAdd,
  kCompareExchange,
  kCompareExchangePair,
  kSwapBytes,
  kTranslateByte,
  kChangeFlag,
  kLoadAh = kChangeFlag + kFlagOperationCount,
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
  kLoopRow = kJumpIf + kConditionCount,  // by size of the counter
  kSetInterruptFlag = kLoopRow + kLoopCount,
  kFall,   // nothing transfers control
  kLeave,  // what follows is made elsewhere
  kRows
};

using HandlerTable = std::array<HandlerRow, kRows>;

/// The handlers of a policy, in 64-bit mode or elsewhere.
const HandlerTable& handlers(Policy policy, bool bits64);

}  // namespace citcat::fast
