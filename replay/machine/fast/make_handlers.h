#pragma once
// Fills in the tables of handlers. Private to the files that hold some each (handlers_*.cc):
// together they take a compiler long.
//
// There is a handler for each operation, size and kind of operand (handlers_*.h). A handler changes
// nothing until everything that it accesses has been found, so that it can be started again, or the
// instruction left to the engine (miss()). Flags are those of the engine, undefined ones included
// (QEMU's cc_helper_template.h has their values by behaviour; bit scans and tests follow
// x86/undefined_flags.h).

#include <cstddef>
#include <type_traits>
#include <utility>

#include "replay/machine/fast/handler_parts.h"
#include "replay/machine/fast/handlers_arithmetic.h"
#include "replay/machine/fast/handlers_bits.h"
#include "replay/machine/fast/handlers_branch.h"
#include "replay/machine/fast/handlers_stack.h"
#include "replay/machine/fast/handlers_vectors.h"

namespace citcat::fast {

/// Calls f(std::integral_constant) for 0 to N - 1.
template <std::size_t N, class F>
constexpr void for_each_number(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::integral_constant<unsigned, I>{}), ...);
  }
  (std::make_index_sequence<N>{});
}

/// Operands of 1, 2, 4 and 8 bytes, by operand_size().
template <unsigned I>
using Sized = std::conditional_t<
    I == 0, std::uint8_t,
    std::conditional_t<I == 1, std::uint16_t,
                       std::conditional_t<I == 2, std::uint32_t, std::uint64_t>>>;
/// How many of them a mode has.
template <class M>
inline constexpr unsigned kSizes = M::kWide ? 4 : 3;

/// Calls f(operand_size()) for the words of a mode: 2 and 4 bytes, in 64-bit mode 8 too.
template <class M, class F>
constexpr void for_each_word(F&& f) {
  for_each_number<kSizes<M> - 1>([&](auto i) { f(std::integral_constant<unsigned, i + 1>{}); });
}

/// The handler of a rare operation takes any segment as one that is not flat.
inline void set_rare(HandlerRow& row, unsigned size, Handler handler) {
  row.in_memory[size][0] = row.in_memory[size][1] = handler;
}

/// The policy of handlers that store nothing, in place of `A`: they need none of their own where
/// only stores are noted.
template <class A>
using Reading = std::conditional_t<
    A::kStores,
    AccessPolicy<A::kExact ? AccessNotes::none : AccessNotes::addresses, A::kExact, A::kWide>, A>;

template <class A>
void add_arithmetic(HandlerTable& t) {
  using R = Reading<A>;
  for_each_number<kSizes<A>>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      for_each_number<kAluCount>([&](auto k) {
        t[kAluFromMemory + k].in_memory[size][flat] = alu_rm<R, k, T, flat>;
        t[kAluWithRegister + k].in_memory[size][flat] = alu_mr<A, k, T, flat>;
        t[kAluWithImmediate + k].in_memory[size][flat] = alu_mi<A, k, T, flat>;
      });
      for_each_number<kUnaryCount>(
          [&](auto k) { t[kUnaryRow + k].in_memory[size][flat] = unary_memory<A, k, T, flat>; });
    });
    for_each_number<kAccumulatorCount>(
        [&](auto k) { set_rare(t[kAccumulatorRow + k], size, accumulate_memory<R, k, T>); });
    for_each_number<kShiftCount>([&](auto k) {
      set_rare(t[kShiftByNumber + k], size, shift_memory<A, k, T, false>);
      set_rare(t[kShiftByCl + k], size, shift_memory<A, k, T, true>);
    });
    set_rare(t[kExchange], size, exchange_memory<A, T>);
    set_rare(t[kExchangeAdd], size, exchange_add_memory<A, T>);
    set_rare(t[kCompareExchange], size, compare_exchange_memory<A, T>);
  });
  set_rare(t[kCompareExchangePair], operand_size(8), compare_exchange_pair<A>);
  set_rare(t[kTranslateByte], operand_size(1), translate_byte<R>);
}

template <class A>
void add_words(HandlerTable& t) {
  using R = Reading<A>;
  for_each_word<A>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      t[kLea].in_memory[size][flat] = lea<ModePolicy<A::kWide>, T, flat>;
      for_each_number<size>([&](auto from) {
        using From = Sized<from>;
        t[kExtendZero + from].in_memory[size][flat] = extend_memory<R, T, From, false, flat>;
        t[kExtendSign + from].in_memory[size][flat] = extend_memory<R, T, From, true, flat>;
      });
      t[kMultiply].in_memory[size][flat] = multiply_memory<R, T, false, flat>;
      t[kMultiplyImmediate].in_memory[size][flat] = multiply_memory<R, T, true, flat>;
      for_each_number<kConditionCount>(
          [&](auto c) { t[kMoveIf + c].in_memory[size][flat] = move_memory_if<R, c, T, flat>; });
    });
    for_each_number<kBitTestCount>([&](auto k) {
      set_rare(t[kTestBitOfRegister + k], size, test_memory_bit<A, k, T, false>);
      set_rare(t[kTestBitOfImmediate + k], size, test_memory_bit<A, k, T, true>);
    });
    for_each_number<2>(
        [&](auto reverse) { set_rare(t[kScan + reverse], size, scan_memory<R, reverse, T>); });
  });
  for_each_number<kConditionCount>(
      [&](auto c) { set_rare(t[kSetIf + c], operand_size(1), set_memory<A, c>); });
}

/// The handlers of one stack and one size of words.
template <class A, bool kFlatStack, unsigned kSize>
void add_stack_of(HandlerTable& t) {
  using R = Reading<A>;
  using T = Sized<kSize>;
  constexpr unsigned kStack = kFlatStack ? 1 : 0;
  t[kPush + kStack].in_registers[kSize] = push_register<A, T, kFlatStack>;
  t[kPushImmediate + kStack].in_registers[kSize] = push_immediate<A, T, kFlatStack>;
  t[kPushFlags + kStack].in_registers[kSize] = push_flags<A, T, kFlatStack>;
  if constexpr (!A::kWide) {
    t[kPushSegment + kStack].in_registers[kSize] = push_segment<A, T, kFlatStack>;
  }
  for_each_number<2>([&](auto flat) {
    t[kPush + kStack].in_memory[kSize][flat] = push_memory<A, T, flat, kFlatStack>;
  });
  t[kPop + kStack].in_registers[kSize] = pop_register<R, T, kFlatStack>;
  set_rare(t[kPop + kStack], kSize, pop_memory<A, T, kFlatStack>);
  t[kPopFlags + kStack].in_registers[kSize] = pop_flags<R, T, kFlatStack>;
  t[kLeaveFrame + kStack].in_registers[kSize] = leave_frame<R, T, kFlatStack>;
}

/// Calls f(whether it is flat, operand_size() of the words that are pushed there) for the stacks of
/// a mode.
template <class M, class F>
void for_each_stack(F&& f) {
  for_each_word<M>([&](auto size) {
    if constexpr (!M::kWide) f(std::false_type{}, size);
    // In 64-bit mode none has 4 bytes.
    if constexpr (!M::kWide || size != operand_size(4)) f(std::true_type{}, size);
  });
}

template <class A>
void add_stack(HandlerTable& t) {
  for_each_stack<A>([&](auto flat, auto size) { add_stack_of<A, flat, size>(t); });
  if constexpr (!A::kWide) {
    for_each_number<2>([&](auto flat) {
      t[kPushAll + flat].in_registers[operand_size(4)] = push_all<A, flat>;
      t[kPopAll + flat].in_registers[operand_size(4)] = pop_all<Reading<A>, flat>;
    });
  }
}

/// Observers that ask for stores alone get no plain stores of 16 bytes.
template <class A>
void add_vectors(HandlerTable& t) {
  using R = Reading<A>;
  set_rare(t[kVector + 1], operand_size(4), vector_load<R, 4>);
  set_rare(t[kVector + 1], operand_size(8), vector_load<R, 8>);
  set_rare(t[kVector + 1], 0, vector_load<R, 16>);
  set_rare(t[kVector + 2], operand_size(4), vector_store<A, 4>);
  set_rare(t[kVector + 2], operand_size(8), vector_store<A, 8>);
  if constexpr (A::kExact || !A::kStores) set_rare(t[kVector + 2], 0, vector_store<A, 16>);
}

template <class A>
void add_accesses(HandlerTable& t) {
  add_arithmetic<A>(t);
  add_vectors<A>(t);
  add_words<A>(t);
  add_stack<A>(t);
}

/// Calls and returns of one stack and words of one size.
template <class F, bool kFlatStack, unsigned kSize>
void add_calls_of(HandlerTable& t) {
  using T = Sized<kSize>;
  constexpr unsigned kStack = kFlatStack ? 1 : 0;
  t[kCall + kStack].in_registers[kSize] = call<F, T, kFlatStack>;
  t[kCallIndirect + kStack].in_registers[kSize] = call_register<F, T, kFlatStack>;
  for_each_number<2>([&](auto flat) {
    t[kCallIndirect + kStack].in_memory[kSize][flat] = call_memory<F, T, flat, kFlatStack>;
  });
  t[kReturn + kStack].in_registers[kSize] = ret<F, T, kFlatStack>;
}

template <class F>
void add_ends(HandlerTable& t) {
  for_each_number<kConditionCount>([&](auto c) { t[kJumpIf + c].in_registers[0] = jump_if<F, c>; });
  t[kJump].in_registers[0] = jump<F>;
  t[kSetInterruptFlag].in_registers[0] = set_interrupt_flag<F>;
  t[kFall].in_registers[0] = fall<F>;
  t[kLeave].in_registers[0] = leave;
  for_each_word<F>([&](auto size) {
    using T = Sized<size>;
    for_each_number<kLoopCount>(
        [&](auto k) { t[kLoopRow + k].in_registers[size] = loop<F, k, T>; });
    t[kJumpIndirect].in_registers[size] = jump_register<F, T>;
    for_each_number<2>(
        [&](auto flat) { t[kJumpIndirect].in_memory[size][flat] = jump_memory<F, T, flat>; });
  });
  for_each_stack<F>([&](auto flat, auto size) {
    // In 64-bit mode they are of 64 bits.
    if constexpr (!F::kWide || size == operand_size(8)) add_calls_of<F, flat, size>(t);
  });
}

template <AccessNotes kNotes, bool kExact>
void HandlersOf<kNotes, kExact>::add_memory(HandlerTable& table, bool bits64) {
  if (bits64) {
    add_accesses<AccessPolicy<kNotes, kExact, true>>(table);
  } else {
    add_accesses<AccessPolicy<kNotes, kExact, false>>(table);
  }
}

template <AccessNotes kNotes, bool kExact>
void HandlersOf<kNotes, kExact>::add_flow(HandlerTable& table, Keep keep, bool bits64) {
  for_each_number<kKeeps>([&](auto number) {
    constexpr auto kKeep = static_cast<Keep>(number.value);
    constexpr bool kIsUsed = !kExact || kKeep != Keep::stores_trail;
    if constexpr (notes_for(kKeep) == kNotes && kIsUsed) {
      if (keep == kKeep && bits64) add_ends<FlowPolicy<kKeep, kExact, true>>(table);
      if (keep == kKeep && !bits64) add_ends<FlowPolicy<kKeep, kExact, false>>(table);
    }
  });
}

}  // namespace citcat::fast
