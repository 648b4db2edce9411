#pragma once
// How rows of handlers are filled in: for each size of operand, each operation, each stack.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "replay/machine/fast/handler_policy.h"
#include "replay/machine/fast/handler_table.h"

namespace citcat::fast {

/// Calls f(std::integral_constant) for 0 to N - 1.
template <std::size_t N, class F>
constexpr void for_each_number(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (f(std::integral_constant<unsigned, I>{}), ...);
  }
  (std::make_index_sequence<N>{});
}

/// Calls f(place, operation) for the operations with a word, each as a std::integral_constant.
template <FastWord kWord, class F>
constexpr void for_each_operation(F&& f) {
  for_each_number<kCount<kWord>>([&](auto place) {
    f(
        place, std::integral_constant<Operation, kOperations<kWord>[place]> {});
  });
}

/// Operands of 1, 2, 4 and 8 bytes, by operand_size().
template <unsigned I>
using Sized = std::conditional_t<
    I == 0, std::uint8_t,
    std::conditional_t<I == 1, std::uint16_t,
                       std::conditional_t<I == 2, std::uint32_t, std::uint64_t>>>;
/// The number of sizes that a mode has.
template <class M>
inline constexpr unsigned kSizes = M::kWide ? 4 : 3;

/// Calls f(operand_size()) for the words of a mode: 2 and 4 bytes, in 64-bit mode 8 too.
template <class M, class F>
constexpr void for_each_word(F&& f) {
  for_each_number<kSizes<M> - 1>([&](auto i) { f(std::integral_constant<unsigned, i + 1>{}); });
}

/// Uses the same handler for flat segments as for others, because the operation is rare.
inline void set_rare(HandlerRow& row, unsigned size, Handler handler) {
  row.in_memory[size][0] = row.in_memory[size][1] = handler;
}

/// The policy of handlers that store nothing, in place of `A`. A policy that notes only stores
/// needs no handlers of its own for them.
template <class A>
using Reading = std::conditional_t<
    A::kStores,
    AccessPolicy<A::kExact ? AccessNotes::none : AccessNotes::addresses, A::kExact, A::kWide>, A>;

/// Calls f(whether it is flat, operand_size() of the words that are pushed there) for the stacks of
/// a mode.
template <class M, class F>
void for_each_stack(F&& f) {
  for_each_word<M>([&](auto size) {
    if constexpr (!M::kWide) f(std::false_type{}, size);
    // In 64-bit mode, no instruction pushes 4 bytes.
    if constexpr (!M::kWide || size != operand_size(4)) f(std::true_type{}, size);
  });
}

}  // namespace citcat::fast
