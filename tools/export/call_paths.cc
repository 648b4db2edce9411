#include "tools/export/call_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace citcat::tools {
namespace {

constexpr std::uint32_t kUser = 3;
// THREAD_SIZE of Linux on i386 and, above its addresses, on amd64.
constexpr unsigned kSystemStackBits = 13, kWideSystemStackBits = 14;
constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};  ///< of frames that no return pops

std::uint64_t stack_key(std::uint32_t level, std::uint32_t address_space, std::uint64_t slot) {
  // No stack of the system has a number with only the upper bit set: addresses there are canonical.
  if (level == kUser) return std::uint64_t{1} << 63 | address_space;
  return slot >> (slot > 0xffffffff ? kWideSystemStackBits : kSystemStackBits);
}

bool is_call(const DecodedInstruction& info) {
  return info.kind == InstructionClass::call || info.kind == InstructionClass::far_call;
}

bool is_return(const DecodedInstruction& info) {
  return info.kind == InstructionClass::ret || info.kind == InstructionClass::far_return;
}

/// Where a call stores its return address: the address of its KT record that is no target.
std::uint64_t stack_slot(const Step& step) {
  const DecodedInstruction& info = step.code->info;
  for (std::uint8_t a = 0; a < step.address_count; ++a) {
    const EaSource source = info.ea[a].source;
    if (source == EaSource::stack_push || source == EaSource::stack_pop) {
      return step.addresses[a].value;
    }
  }
  return 0;
}

}  // namespace

std::string CallPaths::name(const Node& node) const {
  switch (node.kind) {
    case Kind::root:
      return "all";
    case Kind::process:
      return "process " + (names_ != nullptr
                               ? names_->process_of(static_cast<std::uint32_t>(node.value))
                               : fmt::format("{:08x}", node.value));
    case Kind::system:
      return "system";
    case Kind::function:
      return node.name != 0 ? function_names_[node.name] : fmt::format("{:08x}", node.value);
    case Kind::interrupt:
      return fmt::format("interrupt {:02x}", node.value);
    case Kind::exception:
      return fmt::format("exception {:02x}", node.value);
    case Kind::call:
      return "system call";
  }
  return "";
}

std::uint64_t CallPaths::key(std::uint32_t parent, Kind kind, std::uint64_t value) {
  return ((std::uint64_t{parent} << 32) ^ value) * 0x9e3779b97f4a7c15u +
         static_cast<unsigned>(kind);
}

std::uint32_t CallPaths::child(std::uint32_t parent, Kind kind, std::uint64_t value,
                               std::uint32_t name) {
  std::vector<std::uint32_t>& known = children_[key(parent, kind, value)];
  for (const std::uint32_t n : known) {
    const Node& node = nodes_[n];
    if (node.parent == parent && node.kind == kind && node.value == value && node.name == name) {
      return n;
    }
  }
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({kind, parent, value, name});
  known.push_back(number);
  return number;
}

/// The function that is at an address in the process that runs; without names, one begins there.
std::uint32_t CallPaths::function(std::uint32_t parent, LinearAddr at, const Context* context) {
  if (names_ == nullptr || context == nullptr) return child(parent, Kind::function, at.value);
  const auto [place, added] = places_[context->address_space()].try_emplace(at.value);
  if (added) {
    place->second.begin = at.value;
    if (const std::optional<NamedCode> named = names_->procedure(at, *context)) {
      const auto number = static_cast<std::uint32_t>(function_names_.size());
      const auto [name, is_new] = name_numbers_.try_emplace(named->procedure, number);
      if (is_new) function_names_.push_back(named->procedure);
      place->second = {named->begin.value, name->second};
    }
  }
  return child(parent, Kind::function, place->second.begin, place->second.name);
}

void CallPaths::enter(Stack& stack, std::uint32_t node, std::uint64_t slot) {
  ++nodes_[node].entered;
  stack.push_back({node, slot});
}

CallPaths::Stack& CallPaths::stack_at(std::uint64_t stack, std::uint32_t level,
                                      std::uint32_t address_space) {
  current_ = stack;
  Stack& frames = stacks_[current_];
  if (frames.empty()) {
    const bool user = level == kUser;
    enter(frames, user ? child(kRoot, Kind::process, address_space) : child(kRoot, Kind::system, 0),
          kNoSlot);
  }
  return frames;
}

/// The stack of a step: the last one's, unless it runs at another level or in another program.
CallPaths::Stack& CallPaths::stack_of(const Step& step) {
  const bool user = step.level == kUser;
  if (delivered_ && !user) {
    return stack_at(stack_key(step.level, step.address_space, stack_), step.level,
                    step.address_space);
  }
  const bool same = step.level == level_ && (!user || step.address_space == address_space_);
  if (same) return stack_at(current_, step.level, step.address_space);
  // Nothing of the system is left open where a program runs.
  if (user && level_ < kUser) stacks_[current_].clear();
  const std::uint64_t slot = step.accesses.empty() ? 0 : step.accesses.front().linear.value;
  return stack_at(stack_key(step.level, step.address_space, slot), step.level, step.address_space);
}

/// The stack that a call stores its return address on.
CallPaths::Stack& CallPaths::stack_of_call(const Step& step, std::uint64_t slot) {
  const std::uint64_t there = stack_key(step.level, step.address_space, slot);
  if (there == current_) return stacks_[current_];
  const Stack from = stacks_[current_];
  Stack& to = stacks_[there];
  const bool was_left = !to.empty() && to.back().slot > slot && to.back().slot != kNoSlot &&
                        stack_key(step.level, step.address_space, to.back().slot) == there;
  if (!was_left) to = from;
  current_ = there;
  return to;
}

void CallPaths::begin_delivery(Stack& stack) {
  // From level 3 the system's stack is empty; else what was interrupted goes on later.
  if (level_ == kUser) stack.resize(1);
  enter(stack, child(stack.back().node, delivery_, vector_), kNoSlot);
}

/// Back to what was interrupted: before the last delivery.
void CallPaths::end_delivery(Stack& stack) {
  const auto is_delivery = [&](const Frame& f) {
    const Kind kind = nodes_[f.node].kind;
    return kind == Kind::interrupt || kind == Kind::exception || kind == Kind::call;
  };
  const auto found = std::find_if(stack.rbegin(), stack.rend(), is_delivery);
  if (found != stack.rend()) stack.resize(static_cast<std::size_t>(stack.rend() - found) - 1);
}

void CallPaths::happened(const StepEvent& h) {
  switch (h.event.kind) {
    case MachineEvent::Kind::delivered:
      delivered_ = true;
      delivery_ = h.event.delivery.kind == DeliveredEvent::Kind::exception  ? Kind::exception
                  : h.event.delivery.kind == DeliveredEvent::Kind::software ? Kind::call
                                                                            : Kind::interrupt;
      vector_ =
          h.event.delivery.kind == DeliveredEvent::Kind::software ? 0 : h.event.delivery.vector;
      stack_ = h.stack.value;
      return;
    case MachineEvent::Kind::fast_call:
      delivered_ = true;
      delivery_ = Kind::call;
      vector_ = 0;
      stack_ = h.stack.value;
      return;
    case MachineEvent::Kind::returned:
      returned_ = true;
      return;
    default:
      return;
  }
}

void CallPaths::call(const Step& step, std::uint32_t node, const Context* next) {
  const std::uint64_t slot = stack_slot(step);
  Stack& stack = stack_of_call(step, slot);
  const std::uint32_t caller = stack.empty() ? node : stack.back().node;
  enter(stack, function(caller, step.next, next), slot);
}

void CallPaths::return_from(const Step& step) {
  const std::uint64_t slot = stack_slot(step);
  Stack& stack =
      stack_at(stack_key(step.level, step.address_space, slot), step.level, step.address_space);
  while (stack.size() > 1 && stack.back().slot < slot) stack.pop_back();
  if (stack.size() > 1 && stack.back().slot == slot) stack.pop_back();
}

std::uint32_t CallPaths::step(const Step& step, const Context* next) {
  Stack& stack = stack_of(step);
  if (delivered_ && step.level != kUser) {
    begin_delivery(stack);
  } else if (returned_ && step.level != kUser) {
    end_delivery(stack);
  }
  delivered_ = returned_ = false;
  level_ = step.level;
  address_space_ = step.address_space;
  // The first function of a stack, or of a handler, is that in which it is first seen.
  if (stack.empty() || nodes_[stack.back().node].kind != Kind::function) {
    const std::uint32_t parent = stack.empty() ? kRoot : stack.back().node;
    enter(stack, function(parent, step.code->linear, next), kNoSlot);
  }
  const std::uint32_t node = stack.back().node;
  if (step.completes) ++nodes_[node].self;
  const DecodedInstruction& info = step.code->info;
  if (is_call(info)) {
    call(step, node, next);
  } else if (is_return(info)) {
    return_from(step);
  } else if (info.kind == InstructionClass::iret && step.level != kUser &&
             step.address_count != 0) {
    // What is popped there tells which stack goes on.
    stack_at(stack_key(step.level, step.address_space, step.addresses[0].value), step.level,
             step.address_space);
  }
  return node;
}

}  // namespace citcat::tools
