#pragma once
// Handlers of arithmetic and moves, multiplication and division.

#include <cstdint>
#include <limits>
#include <type_traits>

#include "replay/machine/fast/handler_access.h"
#include "replay/machine/fast/row_filling.h"

namespace citcat::fast {

template <Operation K, class T>
CITCAT_FAST_HANDLER void alu_rr(FAST_PARAMETERS) {
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, get<T>(s, op->b), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

template <Operation K, class T>
CITCAT_FAST_HANDLER void alu_ri(FAST_PARAMETERS) {
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, static_cast<T>(op->immediate), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

/// Register, with memory.
template <class A, Operation K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_rm(FAST_PARAMETERS) {
  const Place at = find_operand<A, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const Register<T> z =
      alu<K, T>(alu_reads(K) ? get<T>(s, op->a) : T{0}, read<A, T>(op, s, at), fz, fs, fc);
  if constexpr (alu_writes(K)) put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}

/// Memory, with a register or an immediate.
template <class A, Operation K, class T, bool kFlat, bool kImmediate>
[[gnu::always_inline]] inline void alu_memory(FAST_PARAMETERS) {
  constexpr bool kWrites = alu_writes(K);
  const Place at = find_operand<A, kFlat, sizeof(T), kWrites>(op, s);
  if (!at) FAST_MISS;
  Register<T> x = 0;
  if constexpr (kWrites && alu_reads(K)) {
    if (!may_read_to_write<A, T>(s, at)) FAST_MISS;
    x = read_to_write<A, T>(op, s, at);
  } else if constexpr (alu_reads(K)) {
    x = read<A, T>(op, s, at);
  }
  tell<A>(op, area, at.linear);
  const Register<T> y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  const Register<T> z = alu<K, T>(x, y, fz, fs, fc);
  if constexpr (kWrites) write<A, T>(op, s, at, static_cast<T>(z));
  FAST_NEXT;
}
template <class A, Operation K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_mr(FAST_PARAMETERS) {
  return alu_memory<A, K, T, kFlat, false>(op, s, area, fz, fs, fc);
}
template <class A, Operation K, class T, bool kFlat>
CITCAT_FAST_HANDLER void alu_mi(FAST_PARAMETERS) {
  return alu_memory<A, K, T, kFlat, true>(op, s, area, fz, fs, fc);
}

template <class To, class From, bool kSigned>
CITCAT_FAST_HANDLER void extend_register(FAST_PARAMETERS) {
  const From value = get<From>(s, op->b);
  put<To>(s, op->a, kSigned ? static_cast<To>(static_cast<Signed<From>>(value)) : To{value});
  FAST_NEXT;
}
template <class A, class To, class From, bool kSigned, bool kFlat>
CITCAT_FAST_HANDLER void extend_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, kFlat, sizeof(From), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const From value = read<A, From>(op, s, at);
  put<To>(s, op->a, kSigned ? static_cast<To>(static_cast<Signed<From>>(value)) : To{value});
  FAST_NEXT;
}

template <class M, class T, bool kFlat>
CITCAT_FAST_HANDLER void lea(FAST_PARAMETERS) {
  put<T>(s, op->a, static_cast<T>(offset_of<M, kFlat>(op, s)));
  FAST_NEXT;
}

CITCAT_FAST_HANDLER inline void nothing(FAST_PARAMETERS) { FAST_NEXT; }

template <Operation K, class T>
inline T unary(T x, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  if constexpr (K == Operation::not_) {
    return static_cast<T>(~x);
  } else if constexpr (K == Operation::neg) {
    return static_cast<T>(alu<Operation::sub, T>(0, x, fz, fs, fc));
  } else {
    std::uint32_t carries = 0;
    const Register<T> z = alu < K == Operation::inc ? Operation::add : Operation::sub,
                      T > (x, 1, fz, fs, carries);
    fc = make_carries(fc & LazyFlags::kCarry, overflow_bit(carries), carries & LazyFlags::kHalf);
    return static_cast<T>(z);
  }
}
template <Operation K, class T>
CITCAT_FAST_HANDLER void unary_register(FAST_PARAMETERS) {
  put<T>(s, op->a, unary<K, T>(get<T>(s, op->a), fz, fs, fc));
  FAST_NEXT;
}
template <class A, Operation K, class T, bool kFlat>
CITCAT_FAST_HANDLER void unary_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, kFlat, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T x = read_to_write<A, T>(op, s, at);
  write<A, T>(op, s, at, unary<K, T>(x, fz, fs, fc));
  FAST_NEXT;
}

/// By `count`, which is 1 to 31, or 63 of 64 bits.
template <Operation K, class T>
inline T shift(T x, unsigned count, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  constexpr unsigned kWidth = kBits<T>;
  if constexpr (K == Operation::shl) {
    const std::uint64_t before = std::uint64_t{x} << (count - 1);
    const T z = static_cast<T>(before << 1);
    const std::uint32_t cf = top<T>(static_cast<T>(before));
    set_result<T>(z, fz, fs);
    fc = make_carries(cf, cf ^ top<T>(z));
    return z;
  } else if constexpr (K == Operation::shr || K == Operation::sar) {
    using Whole =
        std::conditional_t<sizeof(T) == 8 && K == Operation::shr, std::uint64_t, std::int64_t>;
    const Whole wide =
        K == Operation::sar ? static_cast<Whole>(static_cast<Signed<T>>(x)) : static_cast<Whole>(x);
    const Whole before = wide >> (count - 1);
    const T z = static_cast<T>(before >> 1);
    set_result<T>(z, fz, fs);
    fc = make_carries(static_cast<std::uint32_t>(before & 1) << 31,
                      top<T>(static_cast<T>(before)) ^ top<T>(z));
    return z;
  } else if constexpr (K == Operation::rol) {
    const T z = std::rotl(x, static_cast<int>(count % kWidth));
    const std::uint32_t cf = static_cast<std::uint32_t>(z) << 31;
    fc = make_carries(cf, cf ^ top<T>(z), fc & LazyFlags::kHalf);
    return z;
  } else if constexpr (K == Operation::ror) {
    const T z = std::rotr(x, static_cast<int>(count % kWidth));
    const std::uint32_t cf = top<T>(z);
    fc = make_carries(cf, cf ^ top<T>(static_cast<T>(z << 1)), fc & LazyFlags::kHalf);
    return z;
  } else {
    // Through the carry: a word of one bit more.
    const unsigned turns = count % (kWidth + 1);
    if (turns == 0) {
      return x;
    }
    using Longer = std::conditional_t<sizeof(T) == 8, Uint128, std::uint64_t>;
    const Longer word = Longer{x} | Longer{fc >> 31} << kWidth;
    constexpr unsigned kWhole = kWidth + 1;
    const unsigned left = K == Operation::rcl ? turns : kWhole - turns;
    const Longer turned = word << left | word >> (kWhole - left);
    const T z = static_cast<T>(turned);
    const std::uint32_t cf = static_cast<std::uint32_t>(turned >> kWidth & 1) << 31;
    fc = make_carries(cf, top<T>(x) ^ top<T>(z), fc & LazyFlags::kHalf);
    return z;
  }
}

template <class T>
inline constexpr unsigned kCountMask = sizeof(T) == 8 ? 63 : 31;

/// Kept for flags in any case, so that no handler has to exist twice for comparisons.
template <class T>
inline unsigned count_in_cl(State* s) {
  const unsigned count = get<std::uint8_t>(s, kEcxAt) & kCountMask<T>;
  s->shift_counts[s->shift_count++ % s->shift_counts.size()] = static_cast<std::uint8_t>(count);
  return count;
}

/// A register of 32 bits that an operation leaves as it is has no upper half any more in 64-bit
/// mode. In other modes there is nothing in it.
template <class T>
inline void clear_upper_half(State* s, std::uint8_t at) {
  if constexpr (sizeof(T) == 4) put<T>(s, at, get<T>(s, at));
}

template <Operation K, class T, bool kByCl>
CITCAT_FAST_HANDLER void shift_register(FAST_PARAMETERS) {
  const unsigned count = kByCl ? count_in_cl<T>(s) : static_cast<unsigned>(op->immediate);
  if (kByCl && count == 0) {
    clear_upper_half<T>(s, op->a);
    FAST_NEXT;
  }
  put<T>(s, op->a, shift<K, T>(get<T>(s, op->a), count, fz, fs, fc));
  FAST_NEXT;
}
/// By CL only where that is not 0: then nothing is written.
template <class A, Operation K, class T, bool kByCl>
CITCAT_FAST_HANDLER void shift_memory(FAST_PARAMETERS) {
  auto count = static_cast<unsigned>(op->immediate);
  if constexpr (kByCl) {
    count = get<std::uint8_t>(s, kEcxAt) & kCountMask<T>;
    if (count == 0) {
      note_miss(s, 0, 0, true);
      FAST_MISS;
    }
  }
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  if constexpr (kByCl) count_in_cl<T>(s);
  tell<A>(op, area, at.linear);
  const T x = read_to_write<A, T>(op, s, at);
  write<A, T>(op, s, at, shift<K, T>(x, count, fz, fs, fc));
  FAST_NEXT;
}

template <class T>
using Twice = std::conditional_t<
    sizeof(T) == 1, std::uint16_t,
    std::conditional_t<sizeof(T) == 2, std::uint32_t,
                       std::conditional_t<sizeof(T) == 4, std::uint64_t, Uint128>>>;

/// SHLD and SHRD of 32 bits or more. `a` is shifted, `b` gives the bits.
template <Operation K, bool kByCl, class T>
CITCAT_FAST_HANDLER void double_shift(FAST_PARAMETERS) {
  constexpr bool kRight = K == Operation::shrd;
  const unsigned count = kByCl ? count_in_cl<T>(s) : static_cast<unsigned>(op->immediate);
  if (kByCl && count == 0) {
    clear_upper_half<T>(s, op->a);
    FAST_NEXT;
  }
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  // Both together, by one less: its last bit is the carry.
  using W = Twice<T>;
  constexpr unsigned kWidth = kBits<T>;
  const W both = kRight ? x | W{y} << kWidth : y | W{x} << kWidth;
  // (Of 64 bits the engine has it without those of `b`, which OF shows where it is undefined.)
  const W whole = kRight && sizeof(T) == 8 ? W{x} : both;
  const auto before = static_cast<T>(kRight ? whole >> (count - 1) : both << (count - 1) >> kWidth);
  const auto z = static_cast<T>(kRight ? both >> count : both << count >> kWidth);
  const std::uint32_t cf = kRight ? static_cast<std::uint32_t>(before) << 31 : top<T>(before);
  put<T>(s, op->a, z);
  set_result<T>(z, fz, fs);
  fc = make_carries(cf, top<T>(static_cast<T>(before ^ z)));
  FAST_NEXT;
}

/// The low and the high half of a product of the accumulator. Flags: those of the low half; CF and
/// OF where the high half matters.
template <class T, bool kSigned>
inline void multiply(State* s, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  using W = Twice<T>;
  const T x = get<T>(s, kEaxAt);
  const W product = kSigned ? static_cast<W>(static_cast<Signed<W>>(static_cast<Signed<T>>(x)) *
                                             static_cast<Signed<W>>(static_cast<Signed<T>>(y)))
                            : static_cast<W>(W{x} * W{y});
  const T low = static_cast<T>(product), high = static_cast<T>(product >> kBits<T>);
  if constexpr (sizeof(T) == 1) {
    put<std::uint16_t>(s, kEaxAt, product);
  } else {
    put<T>(s, kEaxAt, low);
    put<T>(s, kEdxAt, high);
  }
  const T plain = kSigned ? static_cast<T>(static_cast<Signed<T>>(low) >> (kBits<T> - 1)) : T{0};
  set_result<T>(low, fz, fs);
  fc = high != plain ? LazyFlags::kCarry : 0;
  fc = make_carries(fc, fc);
}

/// False where it is an error.
template <class T, bool kSigned>
inline bool divide(State* s, T y) {
  using W = Twice<T>;
  if (y == 0) return false;
  W dividend = 0;
  if constexpr (sizeof(T) == 1) {
    dividend = get<std::uint16_t>(s, kEaxAt);
  } else {
    dividend = static_cast<W>(W{get<T>(s, kEdxAt)} << kBits<T> | get<T>(s, kEaxAt));
  }
  T quotient = 0, remainder = 0;
  if constexpr (kSigned) {
    const auto wide = static_cast<Signed<W>>(dividend);
    const auto by = static_cast<Signed<W>>(static_cast<Signed<T>>(y));
    constexpr W kLowest = W{1} << (kBits<W> - 1);
    if (by == -1 && dividend == kLowest) return false;
    const auto result = static_cast<Signed<W>>(wide / by);
    if (result != static_cast<Signed<T>>(result)) return false;
    quotient = static_cast<T>(result);
    remainder = static_cast<T>(wide % by);
  } else {
    const W result = static_cast<W>(dividend / y);
    if (result != static_cast<T>(result)) return false;
    quotient = static_cast<T>(result);
    remainder = static_cast<T>(dividend % y);
  }
  if constexpr (sizeof(T) == 1) {
    put<std::uint16_t>(s, kEaxAt, static_cast<std::uint16_t>(quotient | remainder << 8));
  } else {
    put<T>(s, kEaxAt, quotient);
    put<T>(s, kEdxAt, remainder);
  }
  return true;
}

template <Operation K, class T>
inline bool accumulate(State* s, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  if constexpr (K == Operation::mul || K == Operation::imul) {
    multiply<T, K == Operation::imul>(s, y, fz, fs, fc);
    return true;
  } else {
    return divide<T, K == Operation::idiv>(s, y);
  }
}
template <Operation K, class T>
CITCAT_FAST_HANDLER void accumulate_register(FAST_PARAMETERS) {
  if (!accumulate<K, T>(s, get<T>(s, op->a), fz, fs, fc)) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  FAST_NEXT;
}
template <class A, Operation K, class T>
CITCAT_FAST_HANDLER void accumulate_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  if (!accumulate<K, T>(s, load<T>(at.host), fz, fs, fc)) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  tell<A>(op, area, at.linear);
  read<A, T>(op, s, at);
  FAST_NEXT;
}

template <class T>
inline T multiply_two(T x, T y, std::uint32_t& fz, std::uint32_t& fs, std::uint32_t& fc) {
  using Product = std::conditional_t<sizeof(T) == 8, Int128, std::int64_t>;
  const Product product = Product{static_cast<Signed<T>>(x)} * static_cast<Signed<T>>(y);
  const T z = static_cast<T>(product);
  set_result<T>(z, fz, fs);
  fc = product != static_cast<Signed<T>>(z) ? LazyFlags::kCarry : 0;
  fc = make_carries(fc, fc);
  return z;
}
/// a = b * (immediate, or a).
template <class T, bool kImmediate>
CITCAT_FAST_HANDLER void multiply_register(FAST_PARAMETERS) {
  const T y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  put<T>(s, op->a, multiply_two<T>(get<T>(s, op->b), y, fz, fs, fc));
  FAST_NEXT;
}
template <class A, class T, bool kImmediate, bool kFlat>
CITCAT_FAST_HANDLER void multiply_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T y = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  put<T>(s, op->a, multiply_two<T>(read<A, T>(op, s, at), y, fz, fs, fc));
  FAST_NEXT;
}

// Rows of the table.

template <unsigned kSize>
void add_arithmetic_registers(HandlerTable& t) {
  using T = Sized<kSize>;
  for_each_operation<FastWord::alu>([&](auto i, auto k) {
    t[kAluWithRegister + i].in_registers[kSize] = alu_rr<k, T>;
    t[kAluWithImmediate + i].in_registers[kSize] = alu_ri<k, T>;
  });
  for_each_operation<FastWord::unary>(
      [&](auto i, auto k) { t[kUnaryRow + i].in_registers[kSize] = unary_register<k, T>; });
  for_each_operation<FastWord::accumulate>([&](auto i, auto k) {
    t[kAccumulatorRow + i].in_registers[kSize] = accumulate_register<k, T>;
  });
  for_each_operation<FastWord::shift>([&](auto i, auto k) {
    t[kShiftByNumber + i].in_registers[kSize] = shift_register<k, T, false>;
    t[kShiftByCl + i].in_registers[kSize] = shift_register<k, T, true>;
  });
  for_each_number<kSize>([&](auto from) {
    t[kExtendZero + from].in_registers[kSize] = extend_register<T, Sized<from>, false>;
    t[kExtendSign + from].in_registers[kSize] = extend_register<T, Sized<from>, true>;
  });
  if constexpr (kSize != operand_size(1)) {
    t[kMultiply].in_registers[kSize] = multiply_register<T, false>;
    t[kMultiplyImmediate].in_registers[kSize] = multiply_register<T, true>;
  }
  // With 16 bits, results can be undefined: the fast tier leaves these instructions to others.
  if constexpr (kSize >= operand_size(4)) {
    for_each_operation<FastWord::double_shift>([&](auto i, auto k) {
      t[kDoubleShiftByNumber + i].in_registers[kSize] = double_shift<k, false, T>;
      t[kDoubleShiftByCl + i].in_registers[kSize] = double_shift<k, true, T>;
    });
  }
}

template <class A>
void add_arithmetic(HandlerTable& t) {
  using R = Reading<A>;
  for_each_number<kSizes<A>>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      for_each_operation<FastWord::alu>([&](auto i, auto k) {
        t[kAluFromMemory + i].in_memory[size][flat] = alu_rm<R, k, T, flat>;
        t[kAluWithRegister + i].in_memory[size][flat] = alu_mr<A, k, T, flat>;
        t[kAluWithImmediate + i].in_memory[size][flat] = alu_mi<A, k, T, flat>;
      });
      for_each_operation<FastWord::unary>([&](auto i, auto k) {
        t[kUnaryRow + i].in_memory[size][flat] = unary_memory<A, k, T, flat>;
      });
      for_each_number<size>([&](auto from) {
        using From = Sized<from>;
        t[kExtendZero + from].in_memory[size][flat] = extend_memory<R, T, From, false, flat>;
        t[kExtendSign + from].in_memory[size][flat] = extend_memory<R, T, From, true, flat>;
      });
    });
    for_each_operation<FastWord::accumulate>([&](auto i, auto k) {
      set_rare(t[kAccumulatorRow + i], size, accumulate_memory<R, k, T>);
    });
    for_each_operation<FastWord::shift>([&](auto i, auto k) {
      set_rare(t[kShiftByNumber + i], size, shift_memory<A, k, T, false>);
      set_rare(t[kShiftByCl + i], size, shift_memory<A, k, T, true>);
    });
  });
  for_each_word<A>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      t[kLea].in_memory[size][flat] = lea<ModePolicy<A::kWide>, T, flat>;
      t[kMultiply].in_memory[size][flat] = multiply_memory<R, T, false, flat>;
      t[kMultiplyImmediate].in_memory[size][flat] = multiply_memory<R, T, true, flat>;
    });
  });
}

}  // namespace citcat::fast
