#include "tools/guest/call_stacks.h"

#include <algorithm>
#include <utility>

namespace citcat::tools {

namespace {

/// Slots of a program that lie farther from each other belong to different stacks, or regions of
/// one: the stacks that an operating system gives its threads are larger than what their frames
/// take.
constexpr std::uint64_t kNear = std::uint64_t{1} << 20;
/// THREAD_SIZE of Linux: on i386 (arch/x86/include/asm/page_32_types.h), and on amd64, whose kernel
/// lies above all addresses of the other (page_64_types.h). Stacks begin at multiples of it.
constexpr unsigned kKernelStackBits = 13, kWideKernelStackBits = 14;

std::uint64_t region_of(LinearAddr slot) {
  return slot.value >> (slot.value >> 32 != 0 ? kWideKernelStackBits : kKernelStackBits);
}

/// Two slots of one space may be of one stack.
bool are_near(AddressSpaceId space, LinearAddr a, LinearAddr b) {
  if (space == CallStacks::kKernel) return region_of(a) == region_of(b);
  return std::max(a.value, b.value) - std::min(a.value, b.value) < kNear;
}

std::uint64_t arc_of(const CallFrame& frame) {
  return std::uint64_t{frame.caller} << 32 | frame.procedure;
}

/// One less; true where that was the last.
template <class Key>
bool release(std::unordered_map<Key, std::uint32_t>& open, Key key) {
  const auto found = open.find(key);
  if (--found->second != 0) return false;
  open.erase(found);
  return true;
}

}  // namespace

/// One after the other, not one within the other: a chain may be longer than the stack is deep.
CallStacks::Stack::~Stack() {
  StackPtr next = std::move(below);
  while (next != nullptr && next.use_count() == 1) next = std::exchange(next->below, nullptr);
}

CallStacks::CallStacks(CallListener& listener)
    : listener_(listener), current_(bare_stack(kNowhere)) {}

CallStacks::StackPtr CallStacks::bare_stack(AddressSpaceId space) {
  auto stack = std::make_shared<Stack>();
  stack->space = space;
  stack->clock = std::make_shared<std::uint64_t>(0);
  return stack;
}

CallStacks::StackPtr CallStacks::make_stack(AddressSpaceId space) {
  StackPtr stack = bare_stack(space);
  stack->base = listener_.began(space);
  return stack;
}

/// Within the first `depth` frames of the stack.
CallPath CallStacks::path_of(const Stack& stack, std::size_t depth) {
  return depth != 0 ? stack.frames[depth - 1].path : stack.base;
}

void CallStacks::leave_top(Stack& stack) {
  const CallFrame frame = stack.frames.back();
  stack.frames.pop_back();
  if (frame.is_base) return;
  const auto at = slots_.find({stack.space, frame.slot.value});
  if (at != slots_.end() && at->second.get() == &stack) slots_.erase(at);
  const bool outermost = release(stack.open, frame.procedure);
  const bool outermost_arc = release(stack.open_arcs, arc_of(frame));
  left_ = stack.clock;
  listener_.left(frame, *stack.clock - frame.entered, outermost, outermost_arc);
}

void CallStacks::leave_to(Stack& stack, std::size_t depth) {
  while (stack.frames.size() > depth) leave_top(stack);
}

/// That has the next slot above this one, if they may be of one stack; else null.
CallStacks::StackPtr CallStacks::stack_above(AddressSpaceId space, LinearAddr slot) const {
  const auto above = slots_.lower_bound({space, slot.value});
  const bool found = above != slots_.end() && above->first.first == space &&
                     are_near(space, LinearAddr{above->first.second}, slot);
  return found ? above->second : nullptr;
}

/// The stack that a new slot lies on: that which runs, unless another one has slots right above it.
/// A kernel may have a region for interrupts, a program one for signals, which its threads lend.
CallStacks::StackPtr CallStacks::stack_for(AddressSpaceId space, LinearAddr slot) {
  const bool here = current_->space == space;
  const bool runs = here && !unsure_;
  const bool is_bare = current_->calls() == 0;
  if (runs && (is_bare || are_near(space, current_->frames.back().slot, slot))) return current_;
  // A handler loads its stack pointer before it calls anything.
  if (here && is_bare && current_->below != nullptr) return current_;
  if (StackPtr above = stack_above(space, slot)) return above;
  return runs || (here && is_bare) ? current_ : make_stack(space);
}

void CallStacks::call(AddressSpaceId space, LinearAddr slot, ProcedureNumber caller,
                      ProcedureNumber procedure) {
  current_ = stack_for(space, slot);
  unsure_ = false;
  if (space != kKernel) programs_[space] = current_;
  Stack& stack = *current_;
  // Frames that the stack pointer has gone beyond are gone.
  while (stack.calls() != 0 && stack.frames.back().slot <= slot &&
         are_near(space, stack.frames.back().slot, slot)) {
    leave_top(stack);
  }
  const auto before = slots_.find({space, slot.value});
  if (before != slots_.end()) {
    // Nobody returns to that stack: its memory is this one's now.
    const StackPtr old = before->second;
    const auto frame =
        std::find_if(old->frames.begin(), old->frames.end(),
                     [&](const CallFrame& f) { return !f.is_base && f.slot == slot; });
    leave_to(*old, static_cast<std::size_t>(frame - old->frames.begin()));
  }
  const CallPath path = listener_.entered(path_of(stack, stack.frames.size()), procedure, false);
  const CallFrame frame{procedure, caller, slot, *stack.clock, path};
  stack.frames.push_back(frame);
  ++stack.open[procedure];
  ++stack.open_arcs[arc_of(frame)];
  slots_[{space, slot.value}] = current_;
}

void CallStacks::returned(AddressSpaceId space, LinearAddr slot) {
  const auto found = slots_.find({space, slot.value});
  if (found == slots_.end()) return returned_unknown(space, slot);
  current_ = found->second;
  unsure_ = false;
  if (space != kKernel) programs_[space] = current_;
  while (current_->frames.back().slot != slot) leave_top(*current_);
  leave_top(*current_);
}

/// A return from a call before the beginning, from something that was no call, or on the stack of a
/// new task.
void CallStacks::returned_unknown(AddressSpaceId space, LinearAddr slot) {
  if (current_->space != space || current_->calls() == 0) return;
  if (!are_near(space, current_->frames.back().slot, slot)) {
    StackPtr there = stack_above(space, slot);
    current_ = there != nullptr ? there : make_stack(space);
    unsure_ = false;
    return;
  }
  if (unsure_) return;
  Stack& stack = *current_;
  while (stack.calls() != 0 && stack.frames.back().slot < slot &&
         are_near(space, stack.frames.back().slot, slot)) {
    leave_top(stack);
  }
}

void CallStacks::leave_within(ProcedureNumber procedure) {
  unsure_ = true;
  while (!current_->frames.empty() && current_->frames.back().procedure != procedure) {
    leave_top(*current_);
  }
}

void CallStacks::becomes(ProcedureNumber procedure) {
  Stack& stack = *current_;
  CallFrame& frame = stack.frames.back();
  const CallFrame before = frame;
  frame.caller = before.procedure;
  frame.procedure = procedure;
  frame.entered = *stack.clock;
  // It takes the place of the one that jumped, within the same caller.
  frame.path =
      listener_.entered(path_of(stack, stack.frames.size() - 1), procedure, before.is_base);
  if (before.is_base) return;
  const bool outermost = release(stack.open, before.procedure);
  const bool outermost_arc = release(stack.open_arcs, arc_of(before));
  ++stack.open[procedure];
  ++stack.open_arcs[arc_of(frame)];
  left_ = stack.clock;
  listener_.left(before, *stack.clock - before.entered, outermost, outermost_arc);
}

void CallStacks::runs_in(AddressSpaceId space) {
  if (current_->space == space) return;
  const auto last = programs_.find(space);
  const bool known = space != kKernel && last != programs_.end();
  current_ = known ? last->second : make_stack(space);
  if (space != kKernel) programs_[space] = current_;
  unsure_ = true;
}

void CallStacks::begin(ProcedureNumber procedure) {
  const CallPath path = listener_.entered(current_->base, procedure, true);
  current_->frames.push_back({procedure, 0, LinearAddr{}, *current_->clock, path, true});
}

void CallStacks::interrupted(const KernelEntry& entry) {
  StackPtr handler = bare_stack(kKernel);
  handler->base = listener_.handles(path(), entry);
  if (entry.kind != KernelEntry::Kind::interrupt) handler->clock = current_->clock;
  handler->below = current_;
  handler->depth = current_->depth + 1;
  current_ = std::move(handler);
  if (current_->depth >= 2 * kDeepest) forget_outermost();
  unsure_ = false;
}

/// Memory is not to grow with the length of a run that never returns from its handlers.
void CallStacks::forget_outermost() {
  Stack* stack = current_.get();
  for (std::uint32_t depth = kDeepest; depth != 0 && stack->below != nullptr; --depth) {
    stack->depth = depth;
    stack = stack->below.get();
  }
  stack->depth = 0;
  stack->below.reset();
}

void CallStacks::resumed(AddressSpaceId address_space) {
  leave_to(*current_, 0);
  if (current_->below == nullptr) {
    unsure_ = true;
    return;
  }
  current_ = current_->below;
  // What is gone back to may be another program than the one that was left.
  unsure_ = current_->space != kKernel && current_->space != address_space;
}

void CallStacks::end() {
  while (!slots_.empty()) {
    const StackPtr stack = slots_.begin()->second;  // which may be the last that holds it
    leave_to(*stack, 0);
  }
}

}  // namespace citcat::tools
