#pragma once
// Handlers of pushes and pops.

#include <cstdint>

#include "replay/machine/fast/handler_access.h"
#include "replay/machine/fast/row_filling.h"

namespace citcat::fast {

template <class A, class T, bool kFlatStack>
[[gnu::always_inline]] inline void push_value(FAST_PARAMETERS, T value) {
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<A, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  write<A, T>(op, s, at, value);
  set_stack_pointer<A, kFlatStack>(s, pointer);
  FAST_NEXT;
}
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_register(FAST_PARAMETERS) {
  return push_value<A, T, kFlatStack>(op, s, area, fz, fs, fc, get<T>(s, op->a));
}
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_immediate(FAST_PARAMETERS) {
  return push_value<A, T, kFlatStack>(op, s, area, fz, fs, fc, static_cast<T>(op->immediate));
}
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_flags(FAST_PARAMETERS) {
  const std::uint32_t value = s->eflags | LazyFlags{fz, fs, fc}.eflags();
  return push_value<A, T, kFlatStack>(op, s, area, fz, fs, fc, static_cast<T>(value));
}
/// `immediate` is from one of its addresses to the other in the area (AreaLayout).
template <class A, class T, bool kFlat, bool kFlatStack>
CITCAT_FAST_HANDLER void push_memory(FAST_PARAMETERS) {
  const Place from = find_operand<A, kFlat, sizeof(T), false>(op, s);
  if (!from) FAST_MISS;
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<A, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  const T value = read<A, T>(op, s, from);
  tell<A>(op, area, at.linear);
  tell<A>(op, area, from.linear, op->immediate);
  write<A, T>(op, s, at, value);
  set_stack_pointer<A, kFlatStack>(s, pointer);
  FAST_NEXT;
}
/// A selector takes a slot of T, of which the upper half stays as it is.
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void push_segment(FAST_PARAMETERS) {
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<A, kFlatStack, 2, true>(s, pointer);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  write<A, std::uint16_t>(op, s, at, s->selectors[op->segment]);
  set_stack_pointer<A, kFlatStack>(s, pointer);
  FAST_NEXT;
}
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_register(FAST_PARAMETERS) {
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt);
  const Place at = find_on_stack<A, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T value = read<A, T>(op, s, at);
  set_stack_pointer<A, kFlatStack>(s, pointer + kBytes<T>);
  put<T>(s, op->a, value);
  FAST_NEXT;
}
/// ESP is not the base of the operand: its address would be that of after the increment.
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_memory(FAST_PARAMETERS) {
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt);
  const Place from = find_on_stack<A, kFlatStack, sizeof(T), false>(s, pointer);
  if (!from) FAST_MISS;
  const Place at = find_operand<A, false, sizeof(T), true>(op, s);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T value = read<A, T>(op, s, from);
  write<A, T>(op, s, at, value);
  set_stack_pointer<A, kFlatStack>(s, pointer + kBytes<T>);
  FAST_NEXT;
}
/// Only arithmetic flags, DF and IF: what loads others is made elsewhere.
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_flags(FAST_PARAMETERS) {
  constexpr std::uint32_t kIf = 0x200, kDf = 0x400;
  const Offset<A> pointer = get<Offset<A>>(s, kEspAt);
  const Place at = find_on_stack<A, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  const auto value = static_cast<std::uint32_t>(load<T>(at.host));
  const std::uint32_t kept = s->eflags;
  const std::uint32_t others = (value ^ kept) & ~(kArithmeticFlags | kDf | kIf | 0x802a) &
                               static_cast<std::uint32_t>(std::numeric_limits<T>::max());
  if (others != 0 || (!s->iopl_allows && ((value ^ kept) & kIf) != 0)) [[unlikely]] {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  tell<A>(op, area, at.linear);
  read<A, T>(op, s, at);
  s->eflags = (kept & ~(kDf | kIf)) | (value & (kDf | kIf));
  set_stack_pointer<A, kFlatStack>(s, pointer + kBytes<T>);
  const LazyFlags flags = LazyFlags::from(value);
  fz = flags.z;
  fs = flags.s;
  fc = flags.c;
  FAST_NEXT;
}
template <class A, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void leave_frame(FAST_PARAMETERS) {
  const Offset<A> pointer = get<Offset<A>>(s, kEbpAt);
  const Place at = find_on_stack<A, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  tell<A>(op, area, at.linear);
  const T value = read<A, T>(op, s, at);
  set_stack_pointer<A, kFlatStack>(s, pointer + kBytes<T>);
  put<T>(s, kEbpAt, value);
  FAST_NEXT;
}
/// All eight slots lie in one page, or it is made elsewhere.
template <class A, bool kFlatStack>
CITCAT_FAST_HANDLER void push_all(FAST_PARAMETERS) {
  const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
  const Place low = find_on_stack<A, kFlatStack, 32, true>(s, esp - 32);
  if (!low) FAST_MISS;
  tell<A>(op, area, low.linear + 28);
  for (std::uint8_t i = 0; i < 8; ++i) {
    const std::uint32_t above = 28u - 4u * i;
    write<A, std::uint32_t>(op, s, {low.host + above, low.linear + above},
                            get<std::uint32_t>(s, static_cast<std::uint8_t>(8 * i)));
  }
  set_stack_pointer<A, kFlatStack>(s, esp - 32);
  FAST_NEXT;
}
template <class A, bool kFlatStack>
CITCAT_FAST_HANDLER void pop_all(FAST_PARAMETERS) {
  const std::uint32_t esp = get<std::uint32_t>(s, kEspAt);
  const Place low = find_on_stack<A, kFlatStack, 32, false>(s, esp);
  if (!low) FAST_MISS;
  tell<A>(op, area, low.linear);
  for (std::uint8_t i = 0; i < 8; ++i) {
    const std::uint32_t above = 4u * i;
    const auto value = read<A, std::uint32_t>(op, s, {low.host + above, low.linear + above});
    const auto to = static_cast<std::uint8_t>(56 - 8 * i);
    if (to != kEspAt) put(s, to, value);
  }
  set_stack_pointer<A, kFlatStack>(s, esp + 32);
  FAST_NEXT;
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

}  // namespace citcat::fast
