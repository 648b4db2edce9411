// Handlers that work on registers alone.

#include "replay/machine/fast/make_handlers.h"

namespace citcat::fast {

namespace {

/// Of one operand size.
template <std::size_t kSize>
void add_size(RegisterHandlers& t) {
  using T = Sized<kSize>;
  for_each_number<kAluCount>([&](auto k) {
    t.alu_rr[k][kSize] = alu_rr<k, T>;
    t.alu_ri[k][kSize] = alu_ri<k, T>;
  });
  for_each_number<kUnaryCount>([&](auto k) { t.unary_register[k][kSize] = unary_register<k, T>; });
  for_each_number<kAccumulatorCount>(
      [&](auto k) { t.accumulate_register[k][kSize] = accumulate_register<k, T>; });
  for_each_number<kShiftCount>([&](auto k) {
    for_each_number<2>(
        [&](auto by_cl) { t.shift_register[k][kSize][by_cl] = shift_register<k, T, by_cl>; });
  });
  t.exchange_register[kSize] = exchange_register<T>;
  t.exchange_add_register[kSize] = exchange_add_register<T>;
  t.compare_exchange_register[kSize] = compare_exchange_register<T>;
}

/// Of one size of words.
template <std::size_t kWord>
void add_word(RegisterHandlers& t) {
  using T = Word<kWord>;
  for_each_number<kWord + 1>([&](auto from) {
    for_each_number<2>([&](auto sign) {
      t.extend_register[sign][kWord][from] = extend_register<T, Sized<from>, sign>;
    });
  });
  for_each_number<2>([&](auto two) {
    t.multiply_register[kWord][two] = multiply_register<T, two>;
    t.scan_register[two][kWord] = scan_register<two, T>;
    for_each_number<kBitTestCount>(
        [&](auto k) { t.test_register_bit[k][kWord][two] = test_register_bit<k, T, two>; });
  });
  for_each_number<16>([&](auto c) { t.move_register_if[c][kWord] = move_register_if<c, T>; });
  t.extend_into_edx[kWord] = extend_into_edx<T>;
  t.read_selector[kWord] = read_selector<T>;
  // Of 16 bits they are undefined, or made elsewhere.
  if constexpr (kWord != 0) {
    t.swap_bytes[kWord] = swap_bytes<T>;
    for_each_number<2>([&](auto right) {
      for_each_number<2>([&](auto by_cl) {
        t.double_shift[kWord][right][by_cl] = double_shift<right, by_cl, T>;
      });
    });
  }
}

}  // namespace

RegisterHandlers register_handlers() {
  RegisterHandlers t{};
  for_each_number<4>([&](auto size) { add_size<size>(t); });
  for_each_number<3>([&](auto word) { add_word<word>(t); });
  for_each_number<16>([&](auto c) { t.set_register[c] = set_register<c>; });
  for_each_number<kFlagOpCount>([&](auto k) { t.change_flag[k] = change_flag<k>; });
  t.nothing = nothing;
  t.load_ah = load_ah;
  t.store_ah = store_ah;
  return t;
}

}  // namespace citcat::fast
