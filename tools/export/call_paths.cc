#include "tools/export/call_paths.h"

#include <fmt/format.h>

#include <algorithm>

namespace citcat::tools {
namespace {

constexpr std::uint32_t kUser = 3;
constexpr unsigned kSystemStackBits = 13;  // THREAD_SIZE of Linux on i386

std::uint64_t stack_key(std::uint32_t level, std::uint32_t address_space, std::uint32_t slot) {
  if (level == kUser) return std::uint64_t{1} << 32 | address_space;
  return slot >> kSystemStackBits;
}

bool is_call(const DecodedInstruction& info) {
  return info.kind == InstructionClass::call || info.kind == InstructionClass::far_call;
}

bool is_return(const DecodedInstruction& info) {
  return info.kind == InstructionClass::ret || info.kind == InstructionClass::far_return;
}

/// Where a call stores its return address: the address of its KT record that is no target.
std::uint32_t stack_slot(const Step& step) {
  const DecodedInstruction& info = step.code->info;
  for (std::uint8_t a = 0; a < step.address_count; ++a) {
    const EaSource source = info.ea[a].source;
    if (source == EaSource::stack_push || source == EaSource::stack_pop) {
      return word_of(step.addresses[a]);
    }
  }
  return 0;
}

}  // namespace

std::string CallPaths::name(const Node& node) {
  switch (node.kind) {
    case Kind::root:
      return "all";
    case Kind::process:
      return fmt::format("process {:08x}", node.value);
    case Kind::system:
      return "system";
    case Kind::function:
      return fmt::format("{:08x}", node.value);
    case Kind::interrupt:
      return fmt::format("interrupt {:02x}", node.value);
    case Kind::exception:
      return fmt::format("exception {:02x}", node.value);
    case Kind::call:
      return "system call";
  }
  return "";
}

std::uint64_t CallPaths::key(std::uint32_t parent, Kind kind, std::uint32_t value) {
  return (std::uint64_t{parent} << 32 | value) * 0x9e3779b97f4a7c15u + static_cast<unsigned>(kind);
}

std::uint32_t CallPaths::child(std::uint32_t parent, Kind kind, std::uint32_t value) {
  std::vector<std::uint32_t>& known = children_[key(parent, kind, value)];
  for (const std::uint32_t n : known) {
    if (nodes_[n].parent == parent && nodes_[n].kind == kind && nodes_[n].value == value) return n;
  }
  const auto number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({kind, parent, value});
  known.push_back(number);
  return number;
}

void CallPaths::enter(Stack& stack, std::uint32_t node, std::uint32_t slot) {
  ++nodes_[node].entered;
  stack.push_back({node, slot});
}

CallPaths::Stack& CallPaths::stack_at(std::uint32_t level, std::uint32_t address_space,
                                      std::uint32_t slot) {
  current_ = stack_key(level, address_space, slot);
  Stack& stack = stacks_[current_];
  if (!stack.empty()) return stack;
  const bool user = level == kUser;
  const std::uint32_t base =
      user ? child(kRoot, Kind::process, address_space) : child(kRoot, Kind::system, 0);
  enter(stack, base, ~std::uint32_t{0});
  return stack;
}

/// The stack of the step, which is the last one's unless the level or the address space changed.
CallPaths::Stack& CallPaths::stack_of(const Step& step) {
  const bool same = step.level == level_ &&
                    (step.level != kUser || step.address_space == address_space_);
  if (same) {
    Stack& stack = stacks_[current_];
    if (!stack.empty()) return stack;
  }
  if (step.level == kUser) return stack_at(kUser, step.address_space, 0);
  // Where the system's stack lies the first access to it tells; until then it is the last one's.
  const std::uint32_t slot = step.accesses.empty() ? 0 : word_of(step.accesses.front().linear);
  return stack_at(step.level, step.address_space, slot);
}

void CallPaths::happened(const Happening& h) {
  switch (h.event.kind) {
    case MachineEvent::Kind::delivered:
      delivered_ = true;
      delivery_ = h.event.delivery.kind == DeliveredEvent::Kind::exception  ? Kind::exception
                  : h.event.delivery.kind == DeliveredEvent::Kind::software ? Kind::call
                                                                            : Kind::interrupt;
      vector_ = h.event.delivery.kind == DeliveredEvent::Kind::software ? 0 : h.event.delivery.vector;
      return;
    case MachineEvent::Kind::fast_call:
      delivered_ = true;
      delivery_ = Kind::call;
      vector_ = 0;
      return;
    case MachineEvent::Kind::returned:
      returned_ = true;
      return;
    default:
      return;
  }
}

std::uint32_t CallPaths::step(const Step& step) {
  Stack* stack = &stack_of(step);
  const bool enters_system = step.level != kUser && level_ == kUser;
  if (delivered_ && step.level != kUser) {
    // From level 3 the stack is empty but for its base; from the system it goes on.
    if (enters_system) stack->resize(1);
    const std::uint32_t slot = step.accesses.empty() ? 0 : word_of(step.accesses.front().linear);
    enter(*stack, child(stack->back().node, delivery_, vector_), slot);
  } else if (returned_ && step.level != kUser) {
    // Back to what was interrupted: behind the last delivery.
    const auto is_delivery = [&](const Frame& f) {
      const Kind kind = nodes_[f.node].kind;
      return kind == Kind::interrupt || kind == Kind::exception || kind == Kind::call;
    };
    const auto found = std::find_if(stack->rbegin(), stack->rend(), is_delivery);
    if (found != stack->rend() && stack->size() > 1) {
      stack->resize(static_cast<std::size_t>(stack->rend() - found) - 1);
    }
    if (stack->empty()) stack = &stack_at(step.level, step.address_space, 0);
  }
  delivered_ = returned_ = false;
  level_ = step.level;
  address_space_ = step.address_space;
  // The first function of a stack is that in which it is first seen.
  if (nodes_[stack->back().node].kind != Kind::function) {
    enter(*stack, child(stack->back().node, Kind::function, word_of(step.code->linear)), ~std::uint32_t{0});
  }
  const std::uint32_t node = stack->back().node;
  if (step.completes) ++nodes_[node].self;
  const DecodedInstruction& info = step.code->info;
  if (is_call(info)) {
    const std::uint32_t slot = stack_slot(step);
    const std::uint64_t there = stack_key(step.level, step.address_space, slot);
    if (there != current_) stack = &stack_at(step.level, step.address_space, slot);
    enter(*stack, child(node, Kind::function, word_of(step.next)), slot);
  } else if (is_return(info)) {
    const std::uint32_t slot = stack_slot(step);
    const std::uint64_t there = stack_key(step.level, step.address_space, slot);
    if (there != current_) stack = &stack_at(step.level, step.address_space, slot);
    while (stack->size() > 1 && stack->back().slot < slot) stack->pop_back();
    if (stack->size() > 1 && stack->back().slot == slot) stack->pop_back();
  }
  return node;
}

}  // namespace citcat::tools
