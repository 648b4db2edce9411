#include "debugger/server/open_stacks.h"

#include <algorithm>
#include <iterator>

namespace citcat {

namespace {

/// Calls kept of a stack, the outermost of which go first, and stacks, of which those go first that
/// have not run for longest.
constexpr std::size_t kMostOpen = 4096, kMostStacks = 256;
/// What is pushed or popped before the stack pointer is seen again after it was loaded.
constexpr std::uint64_t kUnseen = 512;
/// The frames that one load of the stack pointer ends take less.
constexpr std::uint64_t kFrames = 4096;

std::uint64_t distance(LinearAddr a, LinearAddr b) {
  return std::max(a.value, b.value) - std::min(a.value, b.value);
}

}  // namespace

/// That whose used part `top` lies in.
const OpenStacks::Stack* OpenStacks::find(AddressSpaceId space, LinearAddr top) const {
  const Stack* found = nullptr;
  for (const Stack& stack : stacks_) {
    if (stack.space != space) continue;
    LinearAddr outermost = stack.left_at;
    if (!stack.calls.empty()) outermost = std::max(outermost, stack.calls.front().slot);
    if (!stack.entries.empty()) outermost = std::max(outermost, stack.entries.front().frame);
    if (top.value + kUnseen < stack.left_at.value || top.value > outermost.value + kUnseen) {
      continue;
    }
    if (found == nullptr || distance(stack.left_at, top) <= distance(found->left_at, top)) {
      found = &stack;
    }
  }
  return found;
}

const OpenStacks::Stack* OpenStacks::numbered(std::uint64_t number) const {
  const auto found = std::find_if(stacks_.begin(), stacks_.end(),
                                  [&](const Stack& stack) { return stack.number == number; });
  return found == stacks_.end() ? nullptr : &*found;
}

/// What was lent comes back to whom it was lent by.
bool OpenStacks::comes_back_to(const Stack& stack) const {
  const Stack* from = from_ ? numbered(from_->stack) : nullptr;
  for (std::size_t i = 0; from != nullptr && i < kMostStacks; ++i) {
    if (from == &stack) return true;
    from = from->below ? numbered(from->below->stack) : nullptr;
  }
  return false;
}

void OpenStacks::cut(Stack& stack, LinearAddr top) {
  while (!stack.calls.empty() && stack.calls.back().slot < top) stack.calls.pop_back();
  while (!stack.entries.empty() && stack.entries.back().frame < top) stack.entries.pop_back();
}

void OpenStacks::leave(Leave how, std::optional<LinearAddr> at) {
  if (unsure_ || stacks_.empty()) return;
  Stack& stack = stacks_.back();
  if (at) {
    stack.left_at = *at;
    cut(stack, *at);
  } else if (!stack.calls.empty()) {
    stack.left_at = stack.calls.back().slot;
  }
  unsure_ = true;
  from_.reset();
  if (how == Leave::lend) from_ = Below{stack.number, stack.left_at, std::nullopt};
}

void OpenStacks::enter(LinearAddr from, Position at) {
  leave(Leave::lend, from);
  if (from_) from_->entered = at;
}

void OpenStacks::enter_above(LinearAddr frame, Position at) {
  Stack& stack = stacks_.back();
  cut(stack, LinearAddr{frame.value + 1});
  stack.entries.push_back({frame, at});
  if (stack.entries.size() > kMostOpen) stack.entries.pop_front();
}

/// Supervisors lend the stacks that they have for interrupts. Somewhat higher on the same stack,
/// frames have ended.
bool OpenStacks::is_lent(AddressSpaceId space, LinearAddr top) const {
  const bool is_higher = top >= from_->top && top.value - from_->top.value < kFrames;
  return space == kSupervisor && !is_higher;
}

/// `top`: the stack pointer that was loaded.
void OpenStacks::make_current(AddressSpaceId space, LinearAddr top) {
  const Stack* const found = find(space, top);
  const bool comes_back = found != nullptr && comes_back_to(*found);
  if (found == nullptr) {
    if (stacks_.size() >= kMostStacks) stacks_.pop_front();
    Stack& stack = stacks_.emplace_back();
    stack.number = ++made_;
    stack.space = space;
  } else if (found != &stacks_.back()) {
    const auto at = std::find_if(stacks_.begin(), stacks_.end(),
                                 [&](const Stack& stack) { return &stack == found; });
    stacks_.splice(stacks_.end(), stacks_, at);
  }
  Stack& stack = stacks_.back();
  const bool is_idle = stack.calls.empty() && stack.entries.empty();
  if (from_ && !from_->entered && !is_lent(space, top)) from_.reset();
  if (!comes_back && (is_idle || (from_ && from_->entered))) stack.below = from_;
  from_.reset();
  unsure_ = false;
}

void OpenStacks::settle(AddressSpaceId space, LinearAddr top) {
  change_space(space);
  if (unsure_) make_current(space, top);
  Stack& stack = stacks_.back();
  stack.left_at = top;
  cut(stack, top);
}

/// The level changed without an event that says so.
void OpenStacks::change_space(AddressSpaceId space) {
  if (unsure_ || runs_in(space)) return;
  leave(space == kSupervisor ? Leave::lend : Leave::task, std::nullopt);
  unsure_ = true;
}

void OpenStacks::begin(LinearAddr frame) {
  make_current(kSupervisor, frame);
  Stack& stack = stacks_.back();
  stack.calls.clear();
  stack.entries.clear();
  stack.left_at = frame;
}

void OpenStacks::resume(AddressSpaceId space, LinearAddr top) {
  if (!unsure_ && !stacks_.empty() && stacks_.back().space != space) {
    // Nothing of a handler's is in use while the program runs.
    stacks_.pop_back();
  }
  unsure_ = true;
  from_.reset();
  settle(space, top);
}

void OpenStacks::call(const OpenCall& call) {
  const LinearAddr before{call.slot.value + call.slot_bytes};
  change_space(call.space);
  if (unsure_) make_current(call.space, before);
  Stack& stack = stacks_.back();
  cut(stack, before);
  stack.left_at = call.slot;
  stack.calls.push_back(call);
  if (stack.calls.size() > kMostOpen) stack.calls.pop_front();
}

void OpenStacks::returned(AddressSpaceId space, LinearAddr slot) {
  settle(space, slot);
  cut(stacks_.back(), LinearAddr{slot.value + 1});
}

void OpenStacks::arrive(LinearAddr target) {
  if (!stacks_.empty() && !stacks_.back().calls.empty())
    stacks_.back().calls.back().target = target;
}

OpenStacks::Open OpenStacks::open(AddressSpaceId space, LinearAddr top) const {
  Open open;
  const Stack* stack = runs_in(space) ? &stacks_.back() : find(space, top);
  std::optional<Below> below;
  if (stack == nullptr) below = from_;
  for (std::size_t i = 0; i < kMostStacks; ++i) {
    if (stack != nullptr) {
      for (auto call = stack->calls.rbegin(); call != stack->calls.rend(); ++call) {
        if (call->slot >= top) open.calls.push_back(*call);
      }
      for (const Entry& entry : stack->entries) {
        if (entry.frame >= top) open.entries.push_back(entry.at);
      }
      below = stack->below;
    }
    if (!below) break;
    if (below->entered) open.entries.push_back(*below->entered);
    stack = numbered(below->stack);
    if (stack == nullptr) break;
    top = below->top;
  }
  return open;
}

}  // namespace citcat
