#include "tools/guest/call_stacks.h"

#include <algorithm>

namespace citcat::tools {

namespace {

/// Slots that lie farther from each other belong to different stacks, or regions of one: the stacks
/// that an operating system gives its threads are larger than what their frames take.
constexpr std::uint64_t kNear = std::uint64_t{1} << 20;

bool are_near(LinearAddr a, LinearAddr b) {
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

CallStacks::CallStacks(CallListener& listener)
    : listener_(listener), current_(make_stack(kKernel)) {}

CallStacks::StackPtr CallStacks::make_stack(std::uint32_t space) const {
  auto stack = std::make_shared<Stack>();
  stack->space = space;
  stack->clock = std::make_shared<std::uint64_t>(0);
  return stack;
}

/// Of the first `depth` calls of the stack, and of those that its thread has below it.
const CallFrame* CallStacks::innermost_of(const Stack& stack, std::size_t depth) {
  if (depth != 0) return &stack.frames[depth - 1];
  const Stack* const below = stack.below.get();
  if (below == nullptr || below->clock != stack.clock) return nullptr;
  return innermost_of(*below, below->frames.size());
}

void CallStacks::leave_top(Stack& stack) {
  const CallFrame frame = stack.frames.back();
  stack.frames.pop_back();
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

/// The stack that a new slot lies on: that which runs, unless another one has slots right above it.
/// A kernel may have a region for interrupts, a program one for signals, which its threads lend.
CallStacks::StackPtr CallStacks::stack_for(std::uint32_t space, LinearAddr slot) {
  const bool runs = !unsure_ && current_->space == space;
  if (runs && (current_->frames.empty() || are_near(current_->frames.back().slot, slot))) {
    return current_;
  }
  const auto above = slots_.lower_bound({space, slot.value});
  const bool found = above != slots_.end() && above->first.first == space &&
                     above->first.second - slot.value < kNear;
  if (found) return above->second;
  return runs ? current_ : make_stack(space);
}

void CallStacks::call(std::uint32_t space, LinearAddr slot, ProcedureNumber caller,
                      ProcedureNumber procedure) {
  current_ = stack_for(space, slot);
  unsure_ = false;
  Stack& stack = *current_;
  // Frames that the stack pointer has gone beyond are gone.
  while (!stack.frames.empty() && stack.frames.back().slot <= slot &&
         are_near(stack.frames.back().slot, slot)) {
    leave_top(stack);
  }
  const auto before = slots_.find({space, slot.value});
  if (before != slots_.end()) {
    // Of a stack that nobody returns to: its memory is this one's now.
    const StackPtr old = before->second;
    const auto frame = std::find_if(old->frames.begin(), old->frames.end(),
                                    [&](const CallFrame& f) { return f.slot == slot; });
    leave_to(*old, static_cast<std::size_t>(frame - old->frames.begin()));
  }
  const std::uint32_t path = listener_.entered(innermost_of(stack, stack.frames.size()), procedure);
  const CallFrame frame{procedure, caller, slot, *stack.clock, path};
  stack.frames.push_back(frame);
  ++stack.open[procedure];
  ++stack.open_arcs[arc_of(frame)];
  slots_[{space, slot.value}] = current_;
}

void CallStacks::returned(std::uint32_t space, LinearAddr slot) {
  const auto found = slots_.find({space, slot.value});
  if (found == slots_.end()) {
    // Of a call before the beginning, or of what was no call.
    Stack& stack = *current_;
    while (!unsure_ && stack.space == space && !stack.frames.empty() &&
           stack.frames.back().slot < slot && are_near(stack.frames.back().slot, slot)) {
      leave_top(stack);
    }
    return;
  }
  current_ = found->second;
  unsure_ = false;
  while (current_->frames.back().slot != slot) leave_top(*current_);
  leave_top(*current_);
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
  const bool outermost = release(stack.open, before.procedure);
  const bool outermost_arc = release(stack.open_arcs, arc_of(before));
  frame.caller = before.procedure;
  frame.procedure = procedure;
  frame.entered = *stack.clock;
  // It takes the place of the one that jumped, within the same caller.
  frame.path = listener_.entered(innermost_of(stack, stack.frames.size() - 1), procedure);
  ++stack.open[procedure];
  ++stack.open_arcs[arc_of(frame)];
  left_ = stack.clock;
  listener_.left(before, *stack.clock - before.entered, outermost, outermost_arc);
}

void CallStacks::interrupted(bool own) {
  StackPtr handler = make_stack(kKernel);
  if (!own) handler->clock = current_->clock;
  handler->below = current_;
  current_ = std::move(handler);
  unsure_ = false;
}

void CallStacks::resumed(std::uint32_t address_space) {
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
