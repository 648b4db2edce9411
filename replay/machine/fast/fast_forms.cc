#include "replay/machine/fast/fast_forms.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "x86/decode/opcode_table.h"

namespace citcat::fast {

namespace {

/// Where an operation is in a list.
template <std::size_t N>
constexpr std::uint8_t place(Operation operation, const Operation (&list)[N]) {
  for (std::size_t i = 0; i < N; ++i) {
    if (list[i] == operation) return static_cast<std::uint8_t>(i);
  }
  throw "the operation is not one of those that are made alike";
}

/// Operations that are made alike, each list in the order of its enumeration (handler_table.h) or
/// of the conditions.
namespace operation_lists {

using enum Operation;

constexpr Operation kAlu[kAluCount] = {add, or_, adc, sbb, and_, sub, xor_, cmp, test, mov};
constexpr Operation kUnary[kUnaryCount] = {inc, dec, not_, neg};
constexpr Operation kShifts[kShiftCount] = {rol, ror, rcl, rcr, shl, shr, sar};
constexpr Operation kAccumulators[kAccumulatorCount] = {mul, imul, div, idiv};
constexpr Operation kSets[kConditionCount] = {seto, setno, setb, setae, sete, setne, setbe, seta,
                                              sets, setns, setp, setnp, setl, setge, setle, setg};
constexpr Operation kMoves[kConditionCount] = {cmovo,  cmovno, cmovb,  cmovae, cmove, cmovne,
                                               cmovbe, cmova,  cmovs,  cmovns, cmovp, cmovnp,
                                               cmovl,  cmovge, cmovle, cmovg};
constexpr Operation kJumps[kConditionCount] = {jo, jno, jb, jae, je, jne, jbe, ja,
                                               js, jns, jp, jnp, jl, jge, jle, jg};
constexpr Operation kBitTests[kBitTestCount] = {bt, bts, btr, btc};
constexpr Operation kFlagOperations[kFlagOperationCount] = {clc, stc, cmc, cld, std, cli};
constexpr Operation kLoops[kLoopCount] = {loopne, loope, loop, jcxz};

}  // namespace operation_lists

/// What the column `fast` of opcodes.def may say: a function of the operation.
namespace fast_columns {

constexpr FastForm at(Way way, unsigned row, unsigned number = 0) {
  return {way, static_cast<std::uint8_t>(row + number)};
}

constexpr FastForm no(Operation) { return {}; }

constexpr FastForm alu(Operation o) {
  return at(Way::alu, kAluWithRegister, place(o, operation_lists::kAlu));
}
constexpr FastForm unary(Operation o) {
  return at(Way::operands, kUnaryRow, place(o, operation_lists::kUnary));
}
constexpr FastForm shift(Operation o) {
  return at(Way::shift, kShiftByNumber, place(o, operation_lists::kShifts));
}
constexpr FastForm double_shift(Operation o) {
  return at(Way::double_shift, kDoubleShiftByNumber, o == Operation::shrd ? 1 : 0);
}
/// With the accumulator as the other operand.
constexpr FastForm accumulate(Operation o) {
  return at(Way::operands, kAccumulatorRow, place(o, operation_lists::kAccumulators));
}
constexpr FastForm multiply(Operation) { return at(Way::multiply, kMultiply); }
constexpr FastForm extend(Operation o) {
  return at(Way::extend, o == Operation::movzx ? kExtendZero : kExtendSign);
}
constexpr FastForm extend_ax(Operation) { return at(Way::extend_accumulator, kExtendSign); }
constexpr FastForm extend_into_dx(Operation) { return at(Way::word, kExtendIntoDx); }
constexpr FastForm lea(Operation) { return at(Way::lea, kLea); }

constexpr FastForm set_if(Operation o) {
  return at(Way::operands, kSetIf, place(o, operation_lists::kSets));
}
constexpr FastForm move_if(Operation o) {
  return at(Way::operands, kMoveIf, place(o, operation_lists::kMoves));
}
constexpr FastForm jump_if(Operation o) {
  return at(Way::jump, kJumpIf, place(o, operation_lists::kJumps));
}
constexpr FastForm test_bit(Operation o) {
  return at(Way::test_bit, kTestBitOfRegister, place(o, operation_lists::kBitTests));
}
constexpr FastForm scan(Operation o) {
  return at(Way::operands, kScan, o == Operation::bsr ? 1 : 0);
}
constexpr FastForm exchange(Operation) { return at(Way::operands, kExchange); }
constexpr FastForm exchange_ax(Operation) { return at(Way::exchange_accumulator, kExchange); }
constexpr FastForm exchange_add(Operation) { return at(Way::operands, kExchangeAdd); }
constexpr FastForm compare_exchange(Operation) { return at(Way::operands, kCompareExchange); }
constexpr FastForm compare_exchange_pair(Operation) {
  return at(Way::compare_exchange_pair, kCompareExchangePair);
}
constexpr FastForm swap_bytes(Operation) { return at(Way::operands, kSwapBytes); }
constexpr FastForm translate_byte(Operation) { return at(Way::translate_byte, kTranslateByte); }
constexpr FastForm change_flag(Operation o) {
  return at(Way::nothing, kChangeFlag, place(o, operation_lists::kFlagOperations));
}
constexpr FastForm load_ah(Operation) { return at(Way::nothing, kLoadAh); }
constexpr FastForm store_ah(Operation) { return at(Way::nothing, kStoreAh); }
constexpr FastForm read_selector(Operation) { return at(Way::operands, kReadSelector); }
constexpr FastForm vector(Operation) { return at(Way::vector, kVector); }
constexpr FastForm nothing(Operation) { return at(Way::nothing, kNothing); }

constexpr FastForm push(Operation) { return at(Way::push, kPush); }
constexpr FastForm push_segment(Operation) { return at(Way::push_segment, kPushSegment); }
constexpr FastForm push_flags(Operation) { return at(Way::stacked_flags, kPushFlags); }
constexpr FastForm push_all(Operation) { return at(Way::stacked_all, kPushAll); }
constexpr FastForm pop(Operation) { return at(Way::pop, kPop); }
constexpr FastForm pop_flags(Operation) { return at(Way::stacked_flags, kPopFlags); }
constexpr FastForm pop_all(Operation) { return at(Way::stacked_all, kPopAll); }
constexpr FastForm leave_frame(Operation) { return at(Way::leave_frame, kLeaveFrame); }

constexpr FastForm jump(Operation) { return at(Way::jump, kJump); }
constexpr FastForm jump_indirect(Operation) { return at(Way::jump_indirect, kJumpIndirect); }
constexpr FastForm loop(Operation o) {
  return at(Way::loop, kLoopRow, place(o, operation_lists::kLoops));
}
constexpr FastForm call(Operation) { return at(Way::call, kCall); }
constexpr FastForm call_indirect(Operation) { return at(Way::call_indirect, kCallIndirect); }
constexpr FastForm ret(Operation) { return at(Way::ret, kReturn); }
constexpr FastForm sti(Operation) { return at(Way::sti, kSetInterruptFlag); }
constexpr FastForm string(Operation) { return at(Way::string, 0); }

}  // namespace fast_columns

constexpr auto kForms = std::to_array<FastForm>({
#define OPCODE(MAP, FIRST, COUNT, MODRM, PREFIX, OPERATION, ONE, TWO, THREE, ACCESS, REGISTERS, \
               CLASS, ACCESSES, FLAGS, PROCESSORS, TRAITS, FAST)                                \
  fast_columns::FAST(Operation::OPERATION),
#include "x86/decode/opcodes.def"
#undef OPCODE
});

}  // namespace

FastForm fast_form(const OpcodeRow& row) {
  return kForms[static_cast<std::size_t>(&row - opcode_rows().data())];
}

}  // namespace citcat::fast
