// Handlers that work on registers alone.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

namespace {

/// The handlers of one operand size.
template <unsigned kSize>
void add_size(HandlerTable& t) {
  using T = Sized<kSize>;
  for_each_number<kAluCount>([&](auto k) {
    t[kAluWithRegister + k].in_registers[kSize] = alu_rr<k, T>;
    t[kAluWithImmediate + k].in_registers[kSize] = alu_ri<k, T>;
  });
  for_each_number<kUnaryCount>(
      [&](auto k) { t[kUnaryRow + k].in_registers[kSize] = unary_register<k, T>; });
  for_each_number<kAccumulatorCount>(
      [&](auto k) { t[kAccumulatorRow + k].in_registers[kSize] = accumulate_register<k, T>; });
  for_each_number<kShiftCount>([&](auto k) {
    t[kShiftByNumber + k].in_registers[kSize] = shift_register<k, T, false>;
    t[kShiftByCl + k].in_registers[kSize] = shift_register<k, T, true>;
  });
  t[kExchange].in_registers[kSize] = exchange_register<T>;
  t[kExchangeAdd].in_registers[kSize] = exchange_add_register<T>;
  t[kCompareExchange].in_registers[kSize] = compare_exchange_register<T>;
}

/// The handlers of one size of words.
template <unsigned kSize>
void add_word(HandlerTable& t) {
  using T = Sized<kSize>;
  for_each_number<kSize>([&](auto from) {
    t[kExtendZero + from].in_registers[kSize] = extend_register<T, Sized<from>, false>;
    t[kExtendSign + from].in_registers[kSize] = extend_register<T, Sized<from>, true>;
  });
  t[kExtendIntoDx].in_registers[kSize] = extend_into_edx<T>;
  t[kMultiply].in_registers[kSize] = multiply_register<T, false>;
  t[kMultiplyImmediate].in_registers[kSize] = multiply_register<T, true>;
  for_each_number<2>(
      [&](auto reverse) { t[kScan + reverse].in_registers[kSize] = scan_register<reverse, T>; });
  for_each_number<kBitTestCount>([&](auto k) {
    t[kTestBitOfRegister + k].in_registers[kSize] = test_register_bit<k, T, false>;
    t[kTestBitOfImmediate + k].in_registers[kSize] = test_register_bit<k, T, true>;
  });
  for_each_number<kConditionCount>(
      [&](auto c) { t[kMoveIf + c].in_registers[kSize] = move_register_if<c, T>; });
  t[kReadSelector].in_registers[kSize] = read_selector<T>;
  // With 16 bits their results are undefined, so these are executed elsewhere.
  if constexpr (kSize != operand_size(2)) {
    t[kSwapBytes].in_registers[kSize] = swap_bytes<T>;
    for_each_number<2>([&](auto right) {
      t[kDoubleShiftByNumber + right].in_registers[kSize] = double_shift<right, false, T>;
      t[kDoubleShiftByCl + right].in_registers[kSize] = double_shift<right, true, T>;
    });
  }
}

}  // namespace

void add_registers(HandlerTable& t) {
  for_each_number<4>([&](auto size) { add_size<size>(t); });
  for_each_number<3>([&](auto i) { add_word<i + 1>(t); });
  for_each_number<kConditionCount>(
      [&](auto c) { t[kSetIf + c].in_registers[operand_size(1)] = set_register<c>; });
  for_each_number<kFlagOperationCount>(
      [&](auto k) { t[kChangeFlag + k].in_registers[0] = change_flag<k>; });
  t[kNothing].in_registers[0] = nothing;
  t[kVector].in_registers[0] = vector_registers;
  t[kLoadAh].in_registers[0] = load_ah;
  t[kStoreAh].in_registers[0] = store_ah;
}

}  // namespace citcat::fast
