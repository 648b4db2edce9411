#include "tools/analyses/line_stack.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace citcat::tools {

std::uint64_t LineStack::touch(std::uint32_t line) {
  if (knows_last_ && line == last_line_) return 0;
  if (next_ == capacity_) compact();
  std::uint64_t before = kNever;
  const auto known = time_of_.find(line);
  if (known != time_of_.end()) {
    const std::size_t time = known->second;
    before = places_ - sum(time);
    // Caches of more places keep their hole: it is now where the line was.
    const bool has_hole_before = !holes_.empty() && holes_.top() > time;
    vacate(time);
    if (has_hole_before) {
      vacate(holes_.top());
      holes_.pop();
      make_hole(time);
    }
  } else if (!holes_.empty()) {
    vacate(holes_.top());
    holes_.pop();
  }
  put_on_top(line);
  return before;
}

void LineStack::take_away(std::uint32_t line) {
  const auto known = time_of_.find(line);
  if (known == time_of_.end()) return;
  const std::size_t time = known->second;
  time_of_.erase(known);
  vacate(time);
  make_hole(time);
  if (line == last_line_) knows_last_ = false;
}

std::vector<std::uint32_t> LineStack::lines() const {
  std::vector<std::uint32_t> all;
  for (std::size_t t = 0; t < next_; ++t) {
    if (line_at_[t] < kHole) all.push_back(static_cast<std::uint32_t>(line_at_[t]));
  }
  return all;
}

void LineStack::put_on_top(std::uint32_t line) {
  add(next_, 1);
  line_at_[next_] = line;
  time_of_[line] = next_;
  ++next_;
  ++places_;
  last_line_ = line;
  knows_last_ = true;
}

void LineStack::make_hole(std::size_t time) {
  add(time, 1);
  line_at_[time] = kHole;
  holes_.push(time);
  ++places_;
}

void LineStack::vacate(std::size_t time) {
  add(time, -1);
  line_at_[time] = kNoLine;
  --places_;
}

void LineStack::add(std::size_t time, std::int32_t n) {
  for (std::size_t i = time + 1; i <= capacity_; i += i & (~i + 1)) {
    tree_[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(tree_[i]) + n);
  }
}

/// Places at `time` or before it.
std::uint64_t LineStack::sum(std::size_t time) const {
  std::uint64_t n = 0;
  for (std::size_t i = time + 1; i != 0; i -= i & (~i + 1)) n += tree_[i];
  return n;
}

/// Gives the places new times, one behind the other.
void LineStack::compact() {
  std::vector<std::uint64_t> all;
  for (std::size_t t = 0; t < next_; ++t) {
    if (line_at_[t] != kNoLine) all.push_back(line_at_[t]);
  }
  capacity_ = std::max<std::size_t>(std::size_t{1} << 16, std::bit_ceil(4 * all.size()));
  tree_.assign(capacity_ + 1, 0);
  line_at_.assign(capacity_, kNoLine);
  holes_ = {};
  next_ = 0;
  for (const std::uint64_t place : all) {
    line_at_[next_] = place;
    add(next_, 1);
    if (place == kHole) {
      holes_.push(next_);
    } else {
      time_of_[static_cast<std::uint32_t>(place)] = next_;
    }
    ++next_;
  }
}

}  // namespace citcat::tools
