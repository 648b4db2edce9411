#pragma once
// Handlers of conditional operations, bits, exchanges, flags and operations on one register.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "replay/machine/fast/handler_access.h"
#include "replay/machine/fast/row_filling.h"

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

template <Operation K, class T>
inline T test_bit(T x, unsigned bit, std::uint32_t& fc) {
  const T mask = static_cast<T>(T{1} << bit);
  const std::uint32_t cf = (x & mask) != 0 ? LazyFlags::kCarry : 0;
  fc = make_carries(cf, overflow_bit(fc), fc & LazyFlags::kHalf);
  return static_cast<T>(K == Operation::bts   ? x | mask
                        : K == Operation::btr ? x & ~mask
                        : K == Operation::btc ? x ^ mask
                                              : x);
}
template <Operation K, class T, bool kImmediate>
CITCAT_FAST_HANDLER void test_register_bit(FAST_PARAMETERS) {
  const auto bit = static_cast<unsigned>(
      (kImmediate ? static_cast<T>(op->immediate) : get<T>(s, op->b)) & (kBits<T> - 1));
  const T z = test_bit<K, T>(get<T>(s, op->a), bit, fc);
  if constexpr (K != Operation::bt) put<T>(s, op->a, z);
  FAST_NEXT;
}
/// Finds the unit that holds the bit; a register may name one far from the operand.
template <class A, Operation K, class T, bool kImmediate>
CITCAT_FAST_HANDLER void test_memory_bit(FAST_PARAMETERS) {
  constexpr bool kWrites = K != Operation::bt;
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
template <Operation K, class T>
inline void scan(State* s, std::uint8_t to, T x, std::uint32_t& fz, std::uint32_t& fs,
                 std::uint32_t& fc) {
  fz = sizeof(T) == 8 ? (x != 0 ? 1 : 0) : static_cast<std::uint32_t>(x);
  if (x == 0) return;
  const auto found =
      static_cast<std::uint32_t>(K == Operation::bsr ? std::bit_width(x) - 1 : std::countr_zero(x));
  put<T>(s, to, static_cast<T>(found));
  fs = found;  // below 64: no sign, and its parity
  fc = 0;
}
template <Operation K, class T>
CITCAT_FAST_HANDLER void scan_register(FAST_PARAMETERS) {
  scan<K, T>(s, op->a, get<T>(s, op->b), fz, fs, fc);
  FAST_NEXT;
}
template <class A, Operation K, class T>
CITCAT_FAST_HANDLER void scan_memory(FAST_PARAMETERS) {
  const Place at = find_operand<A, false, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  scan<K, T>(s, op->a, read<A, T>(op, s, at), fz, fs, fc);
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
  const Register<T> z = alu<Operation::add, T>(x, y, fz, fs, fc);
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
  const Register<T> z = alu<Operation::add, T>(x, y, fz, fs, fc);
  put<T>(s, op->a, x);
  write<A, T>(op, s, at, static_cast<T>(z));
  FAST_NEXT;
}
/// `b` is the new value of `a`.
template <class T>
CITCAT_FAST_HANDLER void compare_exchange_register(FAST_PARAMETERS) {
  const T x = get<T>(s, op->a), wanted = get<T>(s, kEaxAt);
  alu<Operation::cmp, T>(wanted, x, fz, fs, fc);
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
  alu<Operation::cmp, T>(wanted, x, fz, fs, fc);
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

template <Operation K>
CITCAT_FAST_HANDLER void change_flag(FAST_PARAMETERS) {
  constexpr std::uint32_t kIf = 0x200, kDf = 0x400;
  if constexpr (K == Operation::cli) {
    if (!s->iopl_allows) {
      note_miss(s, 0, 0, false);
      FAST_MISS;
    }
    s->eflags &= ~kIf;
  } else if constexpr (K == Operation::cld) {
    s->eflags &= ~kDf;
  } else if constexpr (K == Operation::std) {
    s->eflags |= kDf;
  } else {
    const std::uint32_t cf = K == Operation::clc   ? 0
                             : K == Operation::stc ? LazyFlags::kCarry
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

// Rows of the table.

/// Adds handlers that do not depend on a size.
inline void add_bit_registers(HandlerTable& t) {
  for_each_number<kConditionCount>(
      [&](auto c) { t[kSetIf + c].in_registers[operand_size(1)] = set_register<c>; });
  for_each_operation<FastWord::change_flag>(
      [&](auto i, auto k) { t[kChangeFlag + i].in_registers[0] = change_flag<k>; });
  t[kLoadAh].in_registers[0] = load_ah;
  t[kStoreAh].in_registers[0] = store_ah;
}

/// Adds handlers for one size of words.
template <unsigned kSize>
void add_bit_registers_of(HandlerTable& t) {
  using T = Sized<kSize>;
  t[kExtendIntoDx].in_registers[kSize] = extend_into_edx<T>;
  for_each_operation<FastWord::scan>(
      [&](auto i, auto k) { t[kScan + i].in_registers[kSize] = scan_register<k, T>; });
  for_each_operation<FastWord::test_bit>([&](auto i, auto k) {
    t[kTestBitOfRegister + i].in_registers[kSize] = test_register_bit<k, T, false>;
    t[kTestBitOfImmediate + i].in_registers[kSize] = test_register_bit<k, T, true>;
  });
  for_each_number<kConditionCount>(
      [&](auto c) { t[kMoveIf + c].in_registers[kSize] = move_register_if<c, T>; });
  t[kReadSelector].in_registers[kSize] = read_selector<T>;
  // With 16 bits, the result of BSWAP is undefined: the fast tier leaves it to others.
  if constexpr (kSize != operand_size(2)) t[kSwapBytes].in_registers[kSize] = swap_bytes<T>;
}

/// Adds handlers for one size of bytes or words.
template <unsigned kSize>
void add_exchange_registers(HandlerTable& t) {
  using T = Sized<kSize>;
  t[kExchange].in_registers[kSize] = exchange_register<T>;
  t[kExchangeAdd].in_registers[kSize] = exchange_add_register<T>;
  t[kCompareExchange].in_registers[kSize] = compare_exchange_register<T>;
}

template <class A>
void add_bits(HandlerTable& t) {
  using R = Reading<A>;
  for_each_number<kSizes<A>>([&](auto size) {
    using T = Sized<size>;
    set_rare(t[kExchange], size, exchange_memory<A, T>);
    set_rare(t[kExchangeAdd], size, exchange_add_memory<A, T>);
    set_rare(t[kCompareExchange], size, compare_exchange_memory<A, T>);
  });
  set_rare(t[kCompareExchangePair], operand_size(8), compare_exchange_pair<A>);
  set_rare(t[kTranslateByte], operand_size(1), translate_byte<R>);
  for_each_word<A>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      for_each_number<kConditionCount>(
          [&](auto c) { t[kMoveIf + c].in_memory[size][flat] = move_memory_if<R, c, T, flat>; });
    });
    for_each_operation<FastWord::test_bit>([&](auto i, auto k) {
      set_rare(t[kTestBitOfRegister + i], size, test_memory_bit<A, k, T, false>);
      set_rare(t[kTestBitOfImmediate + i], size, test_memory_bit<A, k, T, true>);
    });
    for_each_operation<FastWord::scan>(
        [&](auto i, auto k) { set_rare(t[kScan + i], size, scan_memory<R, k, T>); });
  });
  for_each_number<kConditionCount>(
      [&](auto c) { set_rare(t[kSetIf + c], operand_size(1), set_memory<A, c>); });
}

}  // namespace citcat::fast
