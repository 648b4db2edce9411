#pragma once
// Handlers that go from block to block.

#include <cstdint>

#include "replay/machine/fast/handler_access.h"
#include "replay/machine/fast/row_filling.h"

namespace citcat::fast {

/// In place of a number of Block::next: the way leads to many places.
inline constexpr std::uint8_t kIndirect = 2;

/// The block is done, and the processor goes on at `next`.
template <class F>
[[gnu::always_inline]] inline void go(FAST_PARAMETERS, std::uint64_t next, std::uint8_t link) {
  if constexpr (F::kExact) {
    if (!s->block->counts_shifts) s->untold = s->untold + s->block->flags;
  }
  const auto& jumps = F::kLog ? s->batch_jumps : s->jumps;
  const Block* const b = link == kIndirect ? jumps[State::jump_index(next)] : s->block->next[link];
  bool may = b->eip == next && s->code_pages[b->page_index] == b->where &&
             s->left - b->count >= s->least_left;
  if constexpr (F::kExact) may = may && !s->block->counts_shifts;
  if constexpr (F::kImages) may = may && area + s->block->area_bytes < s->area_limit;
  if constexpr (F::kBatches) may = may && s->may_batch();
  if (may) [[likely]] {
    if constexpr (F::kImages || F::kBatches) area += s->block->area_bytes;
    if constexpr (F::kTrail) area = s->trail_behind(area + s->block->area_bytes);
    if constexpr (F::kImages) {
      const std::uint8_t* from = b->image;
      std::uint8_t* to = area;
      std::uint8_t* const end = area + b->area_bytes;
      do {
        std::memcpy(to, from, kAreaStep);
        to += kAreaStep;
        from += kAreaStep;
      } while (to < end);
    }
    if constexpr (F::kBatches) s->add_to_batch(*b, area);
    if constexpr (F::kTrail) s->trail[s->trailed++ % State::kTrail] = {b, area};
    s->left -= b->count;
    s->block = b;
    if constexpr (F::kCounts) s->count(*b);
    return b->ops[0].handler(b->ops, s, area, fz, fs, fc);
  }
  s->next = next;
  s->exit_link = link;
  s->save(Exit::branch, op, area, {fz, fs, fc});
}

/// After the last operation of a block that transfers nothing.
template <class F>
CITCAT_FAST_HANDLER void fall(FAST_PARAMETERS) {
  return go<F>(op, s, area, fz, fs, fc, op->immediate, 1);
}
/// An operation that the tier does not execute.
CITCAT_FAST_HANDLER inline void leave(FAST_PARAMETERS) {
  s->save(Exit::tail, op, area, {fz, fs, fc});
}

/// The linear address of a target in CS.
template <class F>
inline Offset<F> linear_target(const State* s, Offset<F> target) {
  return F::kWide ? target : static_cast<Offset<F>>(s->segment_base[1]) + target;
}
/// The target of a direct branch, which images of records have. `behind` it are so many bytes more
/// at Op::slot.
template <class F>
inline void tell_direct(const Op* op, const State* s, std::uint8_t* area, std::size_t behind = 0) {
  if constexpr (F::kArea && !F::kImages) {
    const Offset<F> address = linear_target<F>(s, static_cast<Offset<F>>(op->immediate));
    std::memcpy(area + op->slot - behind, &address, sizeof address);
  }
}

template <class F, unsigned C>
CITCAT_FAST_HANDLER void jump_if(FAST_PARAMETERS) {
  tell_direct<F>(op, s, area);
  if (holds<C>(fz, fs, fc)) return go<F>(op, s, area, fz, fs, fc, op->immediate, 0);
  return go<F>(op, s, area, fz, fs, fc, op->displacement, 1);
}

template <class F>
CITCAT_FAST_HANDLER void jump(FAST_PARAMETERS) {
  tell_direct<F>(op, s, area);
  return go<F>(op, s, area, fz, fs, fc, op->immediate, 0);
}

/// LOOPNE, LOOPE, LOOP, JCXZ; T is what counts of ECX.
template <class F, Operation K, class T>
CITCAT_FAST_HANDLER void loop(FAST_PARAMETERS) {
  tell_direct<F>(op, s, area);
  T count = get<T>(s, kEcxAt);
  bool taken = false;
  if constexpr (K == Operation::jcxz) {
    taken = count == 0;
  } else {
    count = static_cast<T>(count - 1);
    put<T>(s, kEcxAt, count);
    taken = count != 0;
    if constexpr (K == Operation::loopne) taken = taken && fz != 0;
    if constexpr (K == Operation::loope) taken = taken && fz == 0;
  }
  if (taken) return go<F>(op, s, area, fz, fs, fc, op->immediate, 0);
  return go<F>(op, s, area, fz, fs, fc, op->displacement, 1);
}

/// The segment ends before: to be refused elsewhere.
template <class F>
inline bool is_target(const State* s, Offset<F> target) {
  if constexpr (F::kWide) return CpuContext::is_canonical(target);
  return target <= s->code_limit;
}
#define FAST_CHECK_TARGET(target)              \
  if (!is_target<F>(s, target)) [[unlikely]] { \
    note_miss(s, 0, 0, false);                 \
    FAST_MISS;                                 \
  }

template <class F, class T>
CITCAT_FAST_HANDLER void jump_register(FAST_PARAMETERS) {
  const Offset<F> target = get<T>(s, op->a);
  FAST_CHECK_TARGET(target);
  tell<F>(op, area, linear_target<F>(s, target));
  return go<F>(op, s, area, fz, fs, fc, target, kIndirect);
}

template <class F, class T, bool kFlat>
CITCAT_FAST_HANDLER void jump_memory(FAST_PARAMETERS) {
  const Place at = find_operand<F, kFlat, sizeof(T), false>(op, s);
  if (!at) FAST_MISS;
  const Offset<F> target = load<T>(at.host);
  FAST_CHECK_TARGET(target);
  read<F, T>(op, s, at);
  tell<F>(op, area, at.linear);
  return go<F>(op, s, area, fz, fs, fc, target, kIndirect);
}

/// `displacement` is where the call returns to.
template <class F, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void call(FAST_PARAMETERS) {
  const Offset<F> pointer = get<Offset<F>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<F, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell_direct<F>(op, s, area, F::kAddressBytes);
  tell<F>(op, area, at.linear);
  write<F, T>(op, s, at, static_cast<T>(op->displacement));
  set_stack_pointer<F, kFlatStack>(s, pointer);
  return go<F>(op, s, area, fz, fs, fc, op->immediate, 0);
}

/// `immediate` is where it returns to.
template <class F, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void call_register(FAST_PARAMETERS) {
  const Offset<F> target = get<T>(s, op->a);
  const Offset<F> pointer = get<Offset<F>>(s, kEspAt) - kBytes<T>;
  FAST_CHECK_TARGET(target);
  const Place at = find_on_stack<F, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  tell<F>(op, area, at.linear);
  tell<F>(op, area, linear_target<F>(s, target), F::kAddressBytes);
  write<F, T>(op, s, at, static_cast<T>(op->immediate));
  set_stack_pointer<F, kFlatStack>(s, pointer);
  return go<F>(op, s, area, fz, fs, fc, target, kIndirect);
}

template <class F, class T, bool kFlat, bool kFlatStack>
CITCAT_FAST_HANDLER void call_memory(FAST_PARAMETERS) {
  const Place from = find_operand<F, kFlat, sizeof(T), false>(op, s);
  if (!from) FAST_MISS;
  const Offset<F> target = load<T>(from.host);
  FAST_CHECK_TARGET(target);
  const Offset<F> pointer = get<Offset<F>>(s, kEspAt) - kBytes<T>;
  const Place at = find_on_stack<F, kFlatStack, sizeof(T), true>(s, pointer);
  if (!at) FAST_MISS;
  read<F, T>(op, s, from);
  tell<F>(op, area, at.linear);
  tell<F>(op, area, from.linear, F::kAddressBytes);
  write<F, T>(op, s, at, static_cast<T>(op->immediate));
  set_stack_pointer<F, kFlatStack>(s, pointer);
  return go<F>(op, s, area, fz, fs, fc, target, kIndirect);
}

/// `immediate` is what it releases besides.
template <class F, class T, bool kFlatStack>
CITCAT_FAST_HANDLER void ret(FAST_PARAMETERS) {
  const Offset<F> pointer = get<Offset<F>>(s, kEspAt);
  const Place at = find_on_stack<F, kFlatStack, sizeof(T), false>(s, pointer);
  if (!at) FAST_MISS;
  const Offset<F> target = load<T>(at.host);
  FAST_CHECK_TARGET(target);
  read<F, T>(op, s, at);
  tell<F>(op, area, at.linear);
  set_stack_pointer<F, kFlatStack>(s, pointer + kBytes<T> + static_cast<Offset<F>>(op->immediate));
  return go<F>(op, s, area, fz, fs, fc, target, kIndirect);
}

/// Ends its block, and the run: interrupts are held off until the next instruction is done.
template <class F>
CITCAT_FAST_HANDLER void set_interrupt_flag(FAST_PARAMETERS) {
  if (!s->iopl_allows) {
    note_miss(s, 0, 0, false);
    FAST_MISS;
  }
  s->eflags |= 0x200;
  s->set_interrupts = true;
  if constexpr (F::kExact) {
    if (!s->block->counts_shifts) s->untold = s->untold + s->block->flags;
  }
  s->next = op->immediate;
  s->exit_link = 1;
  s->save(Exit::branch, op, area, {fz, fs, fc});
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
    for_each_operation<FastWord::loop>(
        [&](auto i, auto k) { t[kLoopRow + i].in_registers[size] = loop<F, k, T>; });
    t[kJumpIndirect].in_registers[size] = jump_register<F, T>;
    for_each_number<2>(
        [&](auto flat) { t[kJumpIndirect].in_memory[size][flat] = jump_memory<F, T, flat>; });
  });
  for_each_stack<F>([&](auto flat, auto size) {
    // In 64-bit mode, calls and returns have 64 bits.
    if constexpr (!F::kWide || size == operand_size(8)) add_calls_of<F, flat, size>(t);
  });
}

}  // namespace citcat::fast
