#pragma once
// Fills in the table of handlers for one policy. Private to the files that hold one each.
//
// There is a handler for each operation, size and kind of operand (handlers_*.h). A handler keeps
// its hands off everything until all that it accesses has been found, so that it can be begun anew,
// or left to somebody else (miss()). What it does to flags is what the engine does, undefined ones
// included (QEMU's cc_helper_template.h has their values by behaviour; bit scans and tests follow
// replay/x86/undefined_flags.h).

#include <cstddef>
#include <type_traits>
#include <utility>

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
/// How many there are of them.
template <class P>
inline constexpr std::size_t kWords = P::kWide ? 3 : 2;
template <class P>
inline constexpr std::size_t kSizes = kWords<P> + 1;

template <class P>
void add_arithmetic(HandlerTable& t) {
  for_each_number<kSizes<P>>([&](auto size) {
    using T = Sized<size>;
    for_each_number<kAluCount>([&](auto k) {
      t.alu_rr[k][size] = alu_rr<P, k, T>;
      t.alu_ri[k][size] = alu_ri<P, k, T>;
      for_each_number<2>([&](auto flat) {
        t.alu_rm[k][size][flat] = alu_rm<P, k, T, flat>;
        t.alu_mr[k][size][flat] = alu_mr<P, k, T, flat>;
        t.alu_mi[k][size][flat] = alu_mi<P, k, T, flat>;
      });
    });
    for_each_number<kUnaryCount>([&](auto k) {
      t.unary_register[k][size] = unary_register<P, k, T>;
      for_each_number<2>(
          [&](auto flat) { t.unary_memory[k][size][flat] = unary_memory<P, k, T, flat>; });
    });
    for_each_number<kAccumulatorCount>([&](auto k) {
      t.accumulate_register[k][size] = accumulate_register<P, k, T>;
      for_each_number<2>([&](auto flat) {
        t.accumulate_memory[k][size][flat] = accumulate_memory<P, k, T, flat>;
      });
    });
  });
}

template <class P>
void add_shifts(HandlerTable& t) {
  for_each_number<kShiftCount>([&](auto k) {
    for_each_number<kSizes<P>>([&](auto size) {
      using T = Sized<size>;
      for_each_number<2>([&](auto by_cl) {
        t.shift_register[k][size][by_cl] = shift_register<P, k, T, by_cl>;
        for_each_number<2>([&](auto flat) {
          t.shift_memory[k][size][by_cl][flat] = shift_memory<P, k, T, by_cl, flat>;
        });
      });
    });
  });
  for_each_number<2>([&](auto right) {
    for_each_number<2>([&](auto by_cl) {
      t.double_shift[1][right][by_cl] = double_shift<P, right, by_cl, std::uint32_t>;
      if constexpr (P::kWide) {
        t.double_shift[2][right][by_cl] = double_shift<P, right, by_cl, std::uint64_t>;
      }
    });
  });
}

template <class P>
void add_moves(HandlerTable& t) {
  for_each_number<kWords<P>>([&](auto to) {
    for_each_number<kWords<P>>([&](auto from) {
      for_each_number<2>([&](auto sign) {
        if constexpr (sizeof(Sized<from>) < sizeof(Word<to>)) {
          t.extend_register[sign][to][from] = extend_register<P, Word<to>, Sized<from>, sign>;
          for_each_number<2>([&](auto flat) {
            t.extend_memory[sign][to][from][flat] =
                extend_memory<P, Word<to>, Sized<from>, sign, flat>;
          });
        }
      });
    });
    for_each_number<2>([&](auto flat) { t.lea[to][flat] = lea<P, Word<to>, flat>; });
    t.extend_into_edx[to] = extend_into_edx<P, Word<to>>;
    t.read_selector[to] = read_selector<P, Word<to>>;
    if constexpr (to != 0) t.swap_bytes[to] = swap_bytes<P, Word<to>>;
  });
  t.nothing = nothing<P>;
  for_each_number<2>([&](auto flat) { t.translate_byte[flat] = translate_byte<P, flat>; });
  for_each_number<2>(
      [&](auto flat) { t.compare_exchange_pair[flat] = compare_exchange_pair<P, flat>; });
  for_each_number<kFlagOpCount>([&](auto k) { t.change_flag[k] = change_flag<P, k>; });
  t.set_interrupt_flag = set_interrupt_flag<P>;
  t.load_ah = load_ah<P>;
  t.store_ah = store_ah<P>;
  for_each_number<kSizes<P>>([&](auto size) {
    using T = Sized<size>;
    t.exchange_register[size] = exchange_register<P, T>;
    t.exchange_add_register[size] = exchange_add_register<P, T>;
    t.compare_exchange_register[size] = compare_exchange_register<P, T>;
    for_each_number<2>([&](auto flat) {
      t.exchange_memory[size][flat] = exchange_memory<P, T, flat>;
      t.exchange_add_memory[size][flat] = exchange_add_memory<P, T, flat>;
      t.compare_exchange_memory[size][flat] = compare_exchange_memory<P, T, flat>;
    });
  });
}

template <class P>
void add_words(HandlerTable& t) {
  for_each_number<kWords<P>>([&](auto size) {
    using T = Word<size>;
    for_each_number<2>([&](auto immediate) {
      t.multiply_register[size][immediate] = multiply_register<P, T, immediate>;
      for_each_number<2>([&](auto flat) {
        t.multiply_memory[size][immediate][flat] = multiply_memory<P, T, immediate, flat>;
      });
      for_each_number<kBitTestCount>([&](auto k) {
        t.test_register_bit[k][size][immediate] = test_register_bit<P, k, T, immediate>;
        for_each_number<2>([&](auto flat) {
          t.test_memory_bit[k][size][immediate][flat] = test_memory_bit<P, k, T, immediate, flat>;
        });
      });
    });
    for_each_number<2>([&](auto reverse) {
      t.scan_register[reverse][size] = scan_register<P, reverse, T>;
      for_each_number<2>([&](auto flat) {
        t.scan_memory[reverse][size][flat] = scan_memory<P, reverse, T, flat>;
      });
    });
  });
}

template <class P, bool kFlatStack, class T, std::size_t kSize>
void add_stack_of(HandlerTable& t) {
  constexpr std::size_t kStack = kFlatStack;
  t.push_register[kSize][kStack] = push_register<P, T, kFlatStack>;
  t.push_immediate[kSize][kStack] = push_immediate<P, T, kFlatStack>;
  t.push_flags[kSize][kStack] = push_flags<P, T, kFlatStack>;
  if constexpr (!P::kWide) t.push_segment[kSize][kStack] = push_segment<P, T, kFlatStack>;
  t.pop_register[kSize][kStack] = pop_register<P, T, kFlatStack>;
  t.pop_flags[kSize][kStack] = pop_flags<P, T, kFlatStack>;
  t.leave_frame[kSize][kStack] = leave_frame<P, T, kFlatStack>;
  for_each_number<2>([&](auto flat) {
    t.push_memory[kSize][flat][kStack] = push_memory<P, T, flat, kFlatStack>;
    t.pop_memory[kSize][flat][kStack] = pop_memory<P, T, flat, kFlatStack>;
  });
}

/// Calls and returns, which in 64-bit mode are of 64 bits.
template <class P, bool kFlatStack, class T, std::size_t kSize>
void add_calls_of(HandlerTable& t) {
  constexpr std::size_t kStack = kFlatStack;
  t.call[kSize][kStack] = call<P, T, kFlatStack>;
  t.call_register[kSize][kStack] = call_register<P, T, kFlatStack>;
  t.ret[kSize][kStack] = ret<P, T, kFlatStack>;
  for_each_number<2>(
      [&](auto flat) { t.call_memory[kSize][flat][kStack] = call_memory<P, T, flat, kFlatStack>; });
}

template <class P>
void add_stack(HandlerTable& t) {
  if constexpr (P::kWide) {
    add_stack_of<P, true, std::uint16_t, 0>(t);
    add_stack_of<P, true, std::uint64_t, 2>(t);
    add_calls_of<P, true, std::uint64_t, 2>(t);
  } else {
    for_each_number<2>([&](auto stack) {
      constexpr bool kFlatStack = stack != 0;
      for_each_number<2>([&](auto size) {
        add_stack_of<P, kFlatStack, Word<size>, size>(t);
        add_calls_of<P, kFlatStack, Word<size>, size>(t);
      });
      t.push_all[stack] = push_all<P, stack>;
      t.pop_all[stack] = pop_all<P, stack>;
    });
  }
}

template <class P>
void add_conditions(HandlerTable& t) {
  for_each_number<16>([&](auto c) {
    t.set_register[c] = set_register<P, c>;
    t.jump_if[c] = jump_if<P, c>;
    for_each_number<2>([&](auto flat) { t.set_memory[c][flat] = set_memory<P, c, flat>; });
    for_each_number<kWords<P>>([&](auto size) {
      using T = Word<size>;
      t.move_register_if[c][size] = move_register_if<P, c, T>;
      for_each_number<2>([&](auto flat) {
        t.move_memory_if[c][size][flat] = move_memory_if<P, c, T, flat>;
      });
    });
  });
  t.jump = jump<P>;
  t.fall = fall<P>;
  t.leave = leave;
  for_each_number<kWords<P>>([&](auto size) {
    using T = Word<size>;
    for_each_number<4>([&](auto k) { t.loop[k][size] = loop<P, k, T>; });
    t.jump_register[size] = jump_register<P, T>;
    for_each_number<2>([&](auto flat) { t.jump_memory[size][flat] = jump_memory<P, T, flat>; });
  });
}

template <class P>
HandlerTable make_handlers() {
  HandlerTable t{};
  add_arithmetic<P>(t);
  add_shifts<P>(t);
  add_moves<P>(t);
  add_words<P>(t);
  add_stack<P>(t);
  add_conditions<P>(t);
  return t;
}

/// The table of policy P, or that for 64-bit mode.
template <class P>
const HandlerTable& tables_of(bool bits64) {
  static const HandlerTable kTable = make_handlers<P>(), kWideTable = make_handlers<Wide<P>>();
  return bits64 ? kWideTable : kTable;
}

}  // namespace citcat::fast
