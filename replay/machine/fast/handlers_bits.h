#pragma once
// Handlers of conditional operations, bits, exchanges, flags and operations on one register.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "replay/machine/fast/handler_access.h"

namespace citcat::fast {

template <unsigned C>
CITCAT_FAST_HANDLER void set_register(FAST_PARAMETERS) {
  put<std::uint8_t>(s, op->a, holds<C>(fz, fs, fc) ? 1 : 0);
  FAST_NEXT;
}
template <class A, unsigned C>
CITCAT_FAST_HANDLER void set_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, 1, true>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  write<A, std::uint8_t>(op, s, at, holds<C>(fz, fs, fc) ? 1 : 0);
  FAST_NEXT;
}
template <unsigned C, class T>
CITCAT_FAST_HANDLER void move_register_if(FAST_PARAMETERS) {
  if (holds<C>(fz, fs, fc)) {
    put<T>(s, op->a, get<T>(s, op->b));
  } else {
    clear_upper_half<T>(s, op->a);
  }
  FAST_NEXT;
}
/// Reads in any case.
template <class A, unsigned C, class T, bool kFlat>
CITCAT_FAST_HANDLER void move_memory_if(FAST_PARAMETERS) {
  const Place at = find_operand<A, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T value = read<A, T>(op, s, at);
  if (holds<C>(fz, fs, fc)) {
    put<T>(s, op->a, value);
  } else {
    clear_upper_half<T>(s, op->a);
  }
  FAST_NEXT;
}

template <unsigned K, class T>
inline T test_bit(T x, unsigned bit, std::uint32_t& fc) {
  const T mask = static_cast<T>(T{1} << bit);
  const std::uint32_t cf = (x & mask) != 0 ? LazyFlags::kCarry : 0;
  fc = make_carries(cf, overflow_bit(fc), fc & LazyFlags::kHalf);
  return static_cast<T>(K == kBts ? x | mask : K == kBtr ? x & ~mask : K == kBtc ? x ^ mask : x);
}
template <unsigned K, class T, bool kImmediate>
CITCAT_FAST_HANDLER void test_register_bit(FAST_PARAMETERS) {
  const auto bit = static_cast<unsigned>(
      (kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->b)) & (kBits<T> - 1));
  const T z = test_bit<K, T>(get<T>(s, op->a), bit, fc);
  if constexpr (K != kBt) put<T>(s, op->a, z);
  FAST_NEXT;
}
/// Finds the unit that holds the bit; a register may name one far from the operand.
template <class A, unsigned K, class T, bool kImmediate>
CITCAT_FAST_HANDLER void test_memory_bit(FAST_PARAMETERS) {
  constexpr bool kWrites = K != kBt;
  Offset<A> offset = offset_of<A, false>(op, s);
  const T number = kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->a);
  if constexpr (!kImmediate) {
    constexpr int kUnit = sizeof(T) == 8 ? 6 : sizeof(T) == 4 ? 5 : 4;
    using Distance = Signed<Offset<A>>;
    offset += static_cast<Offset<A>>(Distance{static_cast<Signed<T>>(number)} >> kUnit) * kBytes<T>;
    if ((op->shift & Op::kNarrow) != 0) offset &= kNarrowMask<A>;
  }
  const Place at = find_in<A, sizeof(T), kWrites>(s, op->segment, offset);
  if (!at) FAST_MISS;
  if constexpr (kWrites) {
    if (!may_read_to_write<A, T>(s, at)) FAST_MISS;
  }
  tell<A>(op, area, at.linear);
  const T x = kWrites ? read_to_write<A, T>(op, s, at) : read<A, T>(op, s, at);
  const T z = test_bit<K, T>(x, static_cast<unsigned>(number & (kBits<T> - 1)), fc);
  if constexpr (kWrites) write<A, T>(op, s, at, z);
  FAST_NEXT;
}

/// BSF and BSR. Without a bit the register and all flags but ZF stay.
template <bool kReverse, class T>
inline void scan(State* s, std::uint8_t to, T x, std::uint32_t& fz, std::uint32_t& fs,
                 std::uint32_t& fc) {
  fz = sizeof(T) == 8 ? (x != 0 ? 1 : 0) : static_cast<std::uint32_t>(x);
  if (x == 0) return;
  const auto found =
      static_cast<std::uint32_t>(kReverse ? std::bit_width(x) - 1 : std::countr_zero(x));
  put<T>(s, to, static_cast<T>(found));
  fs = found;  // below 64: no sign, and its parity
  fc = 0;
}
template <bool kReverse, class T>
CITCAT_FAST_HANDLER void scan_register(FAST_PARAMETERS) {
  scan<kReverse, T>(s, op->a, get<T>(s, op->b), fz, fs, fc);
  FAST_NEXT;
}
template <class A, bool kReverse, class T>
CITCAT_FAST_HANDLER void scan_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  scan<kReverse, T>(s, op->a, read<A, T>(op, s, at), fz, fs, fc);
  FAST_NEXT;
}

template <class T>
CITCAT_FAST_HANDLER void exchange_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  put<T>(s, op->a, y);
  put<T>(s, op->b, x);
  FAST_NEXT;
}
template <class A, class T>
CITCAT_FAST_HANDLER void exchange_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T value = get<T>(s, op->a);
  put<T>(s, op->a, read_to_write<A, T>(op, s, at));
  write<A, T>(op, s, at, value);
  FAST_NEXT;
}
template <class T>
CITCAT_FAST_HANDLER void exchange_add_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), y = get<T>(s, op->b);
  const Register<T> z = alu<kAdd, T>(x, y, fz, fs, fc);
  put<T>(s, op->b, x);
  put<T>(s, op->a, static_cast<T>(z));
  FAST_NEXT;
}
template <class A, class T>
CITCAT_FAST_HANDLER void exchange_add_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T x = read_to_write<A, T>(op, s, at), y = get<T>(s, op->a);
  const Register<T> z = alu<kAdd, T>(x, y, fz, fs, fc);
  put<T>(s, op->a, x);
  write<A, T>(op, s, at, static_cast<T>(z));
  FAST_NEXT;
}
/// `b` is the new value of `a`.
template <class T>
CITCAT_FAST_HANDLER void compare_exchange_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), wanted = get<T>(s, kEaxAt);
  alu<kCmp, T>(wanted, x, fz, fs, fc);
  if (x == wanted) {
    put<T>(s, op->a, get<T>(s, op->b));
  } else {
    put<T>(s, kEaxAt, x);
  }
  FAST_NEXT;
}
/// Writes in either case.
template <class A, class T>
CITCAT_FAST_HANDLER void compare_exchange_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T x = read_to_write<A, T>(op, s, at), wanted = get<T>(s, kEaxAt);
  alu<kCmp, T>(wanted, x, fz, fs, fc);
  write<A, T>(op, s, at, x == wanted ? get<T>(s, op->a) : x);
  if (x != wanted) put<T>(s, kEaxAt, x);
  FAST_NEXT;
}
/// CMPXCHG8B: the same of EDX:EAX and ECX:EBX. Of the flags ZF alone changes.
template <class A>
CITCAT_FAST_HANDLER void compare_exchange_pair(FAST_PARAMETERS) {
  using T = std::uint64_t;
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at || !may_read_to_write<A, T>(s, at)) FAST_MISS;
  tell<A>(op, area, at.linear);
  const auto pair = [s](std::uint8_t upper, std::uint8_t lower) {
    return T{get<std::uint32_t>(s, upper)} << 32 | get<std::uint32_t>(s, lower);
  };
  const T x = read_to_write<A, T>(op, s, at);
  const bool equal = x == pair(kEdxAt, kEaxAt);
  write<A, T>(op, s, at, equal ? pair(kEcxAt, kEbxAt) : x);
  if (!equal) {
    put(s, kEaxAt, static_cast<std::uint32_t>(x));
    put(s, kEdxAt, static_cast<std::uint32_t>(x >> 32));
  }
  fz = equal ? 0 : 1;
  FAST_NEXT;
}
template <class T>
CITCAT_FAST_HANDLER void swap_bytes(FAST_PARAMETERS) {
  if constexpr (sizeof(T) == 8) {
    put<T>(s, op->a, __builtin_bswap64(get<T>(s, op->a)));
  } else {
    put<T>(s, op->a, __builtin_bswap32(get<T>(s, op->a)));
  }
  FAST_NEXT;
}

template <class A>
CITCAT_FAST_HANDLER void translate_byte(FAST_PARAMETERS) {
  Offset<A> offset = get<Offset<A>>(s, kEbxAt) + get<std::uint8_t>(s, kEaxAt);
  if ((op->shift & Op::kNarrow) != 0) offset &= kNarrowMask<A>;
  const Place at = find_in<A, 1, false>(s, op->segment, offset);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  put<std::uint8_t>(s, kEaxAt, read<A, std::uint8_t>(op, s, at));
  FAST_NEXT;
}

// CBW, CWDE, CWD, CDQ are extensions within EAX or into EDX.
template <class T>
CITCAT_FAST_HANDLER void extend_into_edx(FAST_PARAMETERS) {
  const auto value = static_cast<Signed<T>>(get<T>(s, kEaxAt));
  put<T>(s, kEdxAt, static_cast<T>(value >> (kBits<T> - 1)));
  FAST_NEXT;
}

template <unsigned K>
CITCAT_FAST_HANDLER void change_flag(FAST_PARAMETERS) {
  constexpr std::uint32_t kIf = 0x200, kDf = 0x400;
  if constexpr (K == kCli) {
    if (!s->iopl_allows) {
      note_miss(s, 0, 0, false);
      FAST_MISS;
    }
    s->eflags &= ~kIf;
  } else if constexpr (K == kCld) {
    s->eflags &= ~kDf;
  } else if constexpr (K == kStd) {
    s->eflags |= kDf;
  } else {
    const std::uint32_t cf = K == kClc   ? 0
                             : K == kStc ? LazyFlags::kCarry
                                         : ~fc & LazyFlags::kCarry;
    fc = make_carries(cf, overflow_bit(fc), fc & LazyFlags::kHalf);
  }
  FAST_NEXT;
}
CITCAT_FAST_HANDLER inline void load_ah(FAST_PARAMETERS) {  // LAHF
  const std::uint32_t flags = LazyFlags{fz, fs, fc}.eflags() | 2;
  put<std::uint8_t>(s, kAhAt, static_cast<std::uint8_t>(flags & 0xd7));
  FAST_NEXT;
}
CITCAT_FAST_HANDLER inline void store_ah(FAST_PARAMETERS) {  // SAHF
  const std::uint32_t overflow = overflow_bit(fc);
  const LazyFlags flags = LazyFlags::from(get<std::uint8_t>(s, kAhAt));
  fz = flags.z;
  fs = flags.s;
  fc = make_carries(flags.c & LazyFlags::kCarry, overflow, flags.c & LazyFlags::kHalf);
  FAST_NEXT;
}
/// MOV r, Sreg: of 32 bits it clears the upper half.
template <class T>
CITCAT_FAST_HANDLER void read_selector(FAST_PARAMETERS) {
  put<T>(s, op->a, T{s->selectors[op->segment]});
  FAST_NEXT;
}

}  // namespace citcat::fast
