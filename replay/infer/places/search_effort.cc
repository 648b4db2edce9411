#include "replay/infer/places/search_effort.h"

#include <algorithm>

namespace citcat {

namespace {

/// Instructions further that count as a gain although no more interrupts have a place.
constexpr std::uint64_t kGain = 1 << 20;

}  // namespace

void SearchEffort::come_to(std::uint64_t instruction, std::uint64_t transactions) {
  if (instruction <= furthest_) return;
  furthest_ = instruction;
  furthest_read_ = transactions;
}

void SearchEffort::note_gain() {
  if (placed_ <= most_placed_ && furthest_ < gained_at_ + kGain) return;
  most_placed_ = std::max(most_placed_, placed_);
  gained_at_ = furthest_;
  if (time_ != nullptr) time_->gained();
}

/// Instructions of the whole run, as far as is known yet.
std::uint64_t SearchEffort::expected_length() const {
  if (recording_.instructions) return *recording_.instructions;
  const double part = static_cast<double>(std::max<std::uint64_t>(furthest_read_, 1)) /
                      static_cast<double>(recording_.totals.transactions);
  return furthest_ +
         static_cast<std::uint64_t>(static_cast<double>(furthest_) * std::max(0.0, 1 / part - 1));
}

bool SearchEffort::allows(std::uint64_t instructions, std::uint64_t from) const {
  constexpr std::uint64_t kMaxReplays = 3;
  const std::uint64_t length = expected_length();
  const std::uint64_t passed = std::min(length, from);
  // What is left is gone through once to find windows and once from the boundary taken in each.
  return instructions_ + instructions + 2 * (length - passed) <= kMaxReplays * length;
}

}  // namespace citcat
