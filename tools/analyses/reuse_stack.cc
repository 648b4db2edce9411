#include "tools/analyses/reuse_stack.h"

#include <bit>

namespace citcat::tools {

/// A line comes to the front: of those before it, or of all, with distances up to so many bits,
/// each last one goes over its mark.
void ReuseStack::move_marks(unsigned bits, std::uint32_t front) {
  if (bits == 0) return;
  nodes_[front_].bits = 1;
  marks_[1] = front;
  for (unsigned b = 2; b <= bits; ++b) {
    Node& last = nodes_[marks_[b]];
    last.bits = b;
    marks_[b] = last.newer;
  }
}

void ReuseStack::put_in_front(std::uint32_t number) {
  Node& node = nodes_[number];
  node.bits = 0;
  node.time = ++time_;
  node.newer = kNone;
  node.older = front_;
  if (front_ != kNone) nodes_[front_].newer = number;
  front_ = number;
}

/// It is there, and not in front.
unsigned ReuseStack::bring(std::uint32_t number) {
  Node& node = nodes_[number];
  const unsigned bits = node.bits;
  // It may be the last one before the next mark.
  if (marks_[bits + 1] == number) marks_[bits + 1] = node.newer;
  move_marks(bits, number);
  nodes_[node.newer].older = node.older;
  if (node.older != kNone) {
    nodes_[node.older].newer = node.newer;
  } else {
    last_ = node.newer;
  }
  put_in_front(number);
  return bits;
}

unsigned ReuseStack::add(std::uint32_t& number, std::uint64_t line) {
  const auto before = static_cast<std::uint32_t>(size());
  number = before + 1;
  nodes_.emplace_back().line = line;
  move_marks(static_cast<unsigned>(std::bit_width(before)), number);
  put_in_front(number);
  if (last_ == kNone) last_ = number;
  // With so many lines there is a last one of the next distance.
  if (std::has_single_bit(number)) marks_[static_cast<unsigned>(std::bit_width(number))] = last_;
  return kNew;
}

void ReuseStack::take_away(std::uint64_t line) {
  std::uint32_t& number = node_of(line);
  if (number == kNone) return;
  holes_.emplace(nodes_[number].time, number);
  number = kNone;
}

/// The hole nearest to the front, where it is before the line's place, or the line has none,
/// becomes the line's place; who had the line keeps the room it has, where it was.
unsigned ReuseStack::use_with_holes(std::uint32_t& number, std::uint64_t line) {
  const auto [time, hole] = holes_.top();
  if (number != kNone && time < nodes_[number].time) return bring(number);
  unsigned bits = kNew;
  holes_.pop();
  if (number != kNone) {
    bits = nodes_[number].bits;
    holes_.emplace(nodes_[number].time, number);
  }
  number = hole;
  nodes_[hole].line = line;
  if (hole != front_) {
    bring(hole);
  } else {
    nodes_[hole].time = ++time_;
  }
  return bits;
}

std::vector<std::uint64_t> ReuseStack::lines() const {
  std::vector<std::uint64_t> all;
  for (std::uint32_t n = last_; n != kNone; n = nodes_[n].newer) all.push_back(nodes_[n].line);
  return all;
}

}  // namespace citcat::tools
