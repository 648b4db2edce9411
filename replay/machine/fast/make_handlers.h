#pragma once
// Fills in the tables of handlers. Private to the files that hold some each (handlers_*.cc):
// together they take a compiler long.
//
// There is a handler for each operation, size and kind of operand (handlers_*.h). A handler keeps
// its hands off everything until all that it accesses has been found, so that it can be begun anew,
// or left to somebody else (miss()). What it does to flags is what the engine does, undefined ones
// included (QEMU's cc_helper_template.h has their values by behaviour; bit scans and tests follow
// replay/x86/undefined_flags.h).

#include <cstddef>
#include <type_traits>
#include <utility>

#include "replay/machine/fast/handler_parts.h"
#include "replay/machine/fast/handlers_arithmetic.h"
#include "replay/machine/fast/handlers_bits.h"
#include "replay/machine/fast/handlers_branch.h"
#include "replay/machine/fast/handlers_stack.h"

namespace citcat::fast {

/// Calls f(std::integral_constant) for 0 to N - 1.
template <std::size_t N, class F>
constexpr void for_each_number(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::integral_constant<unsigned, I>{}), ...);
  }(std::make_index_sequence<N>{});
}

/// Operands of 1, 2, 4 and 8 bytes, and words of 2, 4 and 8.
template <unsigned I>
using Sized = std::conditional_t<
    I == 0, std::uint8_t,
    std::conditional_t<I == 1, std::uint16_t,
                       std::conditional_t<I == 2, std::uint32_t, std::uint64_t>>>;
template <unsigned I>
using Word = Sized<I + 1>;
/// How many there are of them in a mode.
template <class M>
inline constexpr std::size_t kWords = M::kWide ? 3 : 2;
template <class M>
inline constexpr std::size_t kSizes = kWords<M> + 1;

template <class A>
void add_arithmetic(MemoryHandlers& t) {
  for_each_number<kSizes<A>>([&](auto size) {
    using T = Sized<size>;
    for_each_number<2>([&](auto flat) {
      for_each_number<kAluCount>([&](auto k) {
        t.alu_rm[k][size][flat] = alu_rm<A, k, T, flat>;
        t.alu_mr[k][size][flat] = alu_mr<A, k, T, flat>;
        t.alu_mi[k][size][flat] = alu_mi<A, k, T, flat>;
      });
      for_each_number<kUnaryCount>(
          [&](auto k) { t.unary_memory[k][size][flat] = unary_memory<A, k, T, flat>; });
    });
    for_each_number<kAccumulatorCount>(
        [&](auto k) { t.accumulate_memory[k][size] = accumulate_memory<A, k, T>; });
    for_each_number<kShiftCount>([&](auto k) {
      for_each_number<2>(
          [&](auto by_cl) { t.shift_memory[k][size][by_cl] = shift_memory<A, k, T, by_cl>; });
    });
    t.exchange_memory[size] = exchange_memory<A, T>;
    t.exchange_add_memory[size] = exchange_add_memory<A, T>;
    t.compare_exchange_memory[size] = compare_exchange_memory<A, T>;
  });
  t.compare_exchange_pair = compare_exchange_pair<A>;
  t.translate_byte = translate_byte<A>;
}

template <class A>
void add_words(MemoryHandlers& t) {
  for_each_number<kWords<A>>([&](auto size) {
    using T = Word<size>;
    for_each_number<2>([&](auto flat) {
      t.lea[size][flat] = lea<ModePolicy<A::kWide>, T, flat>;
      for_each_number<kWords<A>>([&](auto from) {
        for_each_number<2>([&](auto sign) {
          if constexpr (sizeof(Sized<from>) < sizeof(T)) {
            t.extend_memory[sign][size][from][flat] = extend_memory<A, T, Sized<from>, sign, flat>;
          }
        });
      });
      for_each_number<2>([&](auto immediate) {
        t.multiply_memory[size][immediate][flat] = multiply_memory<A, T, immediate, flat>;
      });
      for_each_number<16>(
          [&](auto c) { t.move_memory_if[c][size][flat] = move_memory_if<A, c, T, flat>; });
    });
    for_each_number<2>([&](auto immediate) {
      for_each_number<kBitTestCount>([&](auto k) {
        t.test_memory_bit[k][size][immediate] = test_memory_bit<A, k, T, immediate>;
      });
    });
    for_each_number<2>(
        [&](auto reverse) { t.scan_memory[reverse][size] = scan_memory<A, reverse, T>; });
  });
  for_each_number<16>([&](auto c) { t.set_memory[c] = set_memory<A, c>; });
}

template <class A, bool kFlatStack, std::size_t kSize>
void add_stack_of(MemoryHandlers& t) {
  constexpr std::size_t kStack = kFlatStack;
  using T = Word<kSize>;
  t.push_register[kSize][kStack] = push_register<A, T, kFlatStack>;
  t.push_immediate[kSize][kStack] = push_immediate<A, T, kFlatStack>;
  t.push_flags[kSize][kStack] = push_flags<A, T, kFlatStack>;
  if constexpr (!A::kWide) t.push_segment[kSize][kStack] = push_segment<A, T, kFlatStack>;
  t.pop_register[kSize][kStack] = pop_register<A, T, kFlatStack>;
  t.pop_memory[kSize][kStack] = pop_memory<A, T, kFlatStack>;
  t.pop_flags[kSize][kStack] = pop_flags<A, T, kFlatStack>;
  t.leave_frame[kSize][kStack] = leave_frame<A, T, kFlatStack>;
  for_each_number<2>([&](auto flat) {
    t.push_memory[kSize][flat][kStack] = push_memory<A, T, flat, kFlatStack>;
  });
}

/// Calls f(whether it is flat, index of the words that are pushed there) for the stacks of a mode.
template <class M, class F>
void for_each_stack(F&& f) {
  if constexpr (M::kWide) {
    f(std::true_type{}, std::integral_constant<std::size_t, 0>{});
    f(std::true_type{}, std::integral_constant<std::size_t, 2>{});
  } else {
    for_each_number<2>([&](auto size) {
      f(std::false_type{}, size);
      f(std::true_type{}, size);
    });
  }
}

template <class A>
void add_stack(MemoryHandlers& t) {
  for_each_stack<A>([&](auto flat, auto size) { add_stack_of<A, flat, size>(t); });
  if constexpr (!A::kWide) {
    for_each_number<2>([&](auto flat) {
      t.push_all[flat] = push_all<A, flat>;
      t.pop_all[flat] = pop_all<A, flat>;
    });
  }
}

template <class A>
MemoryHandlers make_memory_handlers() {
  MemoryHandlers t{};
  add_arithmetic<A>(t);
  add_words<A>(t);
  add_stack<A>(t);
  return t;
}

template <class F>
FlowHandlers make_flow_handlers() {
  FlowHandlers t{};
  for_each_number<16>([&](auto c) { t.jump_if[c] = jump_if<F, c>; });
  t.jump = jump<F>;
  t.fall = fall<F>;
  t.leave = leave;
  t.set_interrupt_flag = set_interrupt_flag<F>;
  for_each_number<kWords<F>>([&](auto size) {
    using T = Word<size>;
    for_each_number<4>([&](auto k) { t.loop[k][size] = loop<F, k, T>; });
    t.jump_register[size] = jump_register<F, T>;
    for_each_number<2>([&](auto flat) { t.jump_memory[size][flat] = jump_memory<F, T, flat>; });
  });
  for_each_stack<F>([&](auto stack, auto size) {
    using T = Word<size>;
    // In 64-bit mode calls and returns are of 64 bits.
    if constexpr (!F::kWide || sizeof(T) == 8) {
      t.call[size][stack] = call<F, T, stack>;
      t.call_register[size][stack] = call_register<F, T, stack>;
      t.ret[size][stack] = ret<F, T, stack>;
      for_each_number<2>([&](auto flat) {
        t.call_memory[size][flat][stack] = call_memory<F, T, flat, stack>;
      });
    }
  });
  return t;
}

template <AccessNotes kNotes, bool kExact>
MemoryHandlers HandlersOf<kNotes, kExact>::memory(bool bits64) {
  return bits64 ? make_memory_handlers<AccessPolicy<kNotes, kExact, true>>()
                : make_memory_handlers<AccessPolicy<kNotes, kExact, false>>();
}

template <AccessNotes kNotes, bool kExact>
FlowHandlers HandlersOf<kNotes, kExact>::flow(Keep keep, bool bits64) {
  FlowHandlers made{};
  for_each_number<kKeeps>([&](auto number) {
    constexpr auto kKeep = static_cast<Keep>(number.value);
    if constexpr (notes_for(kKeep) == kNotes) {
      if (keep != kKeep) return;
      made = bits64 ? make_flow_handlers<FlowPolicy<kKeep, kExact, true>>()
                    : make_flow_handlers<FlowPolicy<kKeep, kExact, false>>();
    }
  });
  return made;
}

}  // namespace citcat::fast
