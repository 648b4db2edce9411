#include "replay/verify/doubts.h"

#include <algorithm>

namespace citcat {

const std::vector<Doubts::Stretch>& Doubts::look_again() {
  std::uint64_t run = 0;
  for (const Doubt& doubt : doubts_) run = std::max(run, doubt.instruction);
  const std::uint64_t most = run / kShare / std::max<std::size_t>(doubts_.size(), 1);
  const std::uint64_t first_length = std::clamp(most, kShortest, kLongest);
  for (Doubt& doubt : doubts_) {
    if (doubt.open) doubt.length = doubt.length == 0 ? first_length : doubt.length * kLonger;
    doubt.open = false;
  }
  lay_stretches();
  return stretches_;
}

/// A doubt is noticed one instruction after its line at most.
void Doubts::lay_stretches() {
  std::vector<Stretch> each;
  for (const Doubt& doubt : doubts_) each.push_back({doubt.first(), doubt.instruction + 2});
  std::sort(each.begin(), each.end(),
            [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  stretches_.clear();
  for (const Stretch& stretch : each) {
    if (!stretches_.empty() && stretch.first <= stretches_.back().end) {
      stretches_.back().end = std::max(stretches_.back().end, stretch.end);
    } else {
      stretches_.push_back(stretch);
    }
  }
  next_ = 0;
}

bool Doubts::remain() const {
  return std::any_of(doubts_.begin(), doubts_.end(), [](const Doubt& d) { return d.open; });
}

bool Doubts::is_close(std::uint64_t instruction) {
  while (next_ < stretches_.size() && stretches_[next_].end <= instruction) ++next_;
  return next_ < stretches_.size() && stretches_[next_].first <= instruction;
}

std::uint64_t Doubts::next_stretch() const {
  return next_ < stretches_.size() ? stretches_[next_].first : ~std::uint64_t{0};
}

/// The first of this transaction or a later one.
std::vector<Doubts::Doubt>::iterator Doubts::find(std::uint64_t transaction) {
  return std::lower_bound(
      doubts_.begin(), doubts_.end(), transaction,
      [](const Doubt& d, std::uint64_t number) { return d.transaction < number; });
}

bool Doubts::put_off(std::uint64_t transaction, Position now) {
  const auto doubt = find(transaction);
  if (doubt == doubts_.end() || doubt->transaction != transaction) {
    if (doubts_.size() == kMost) return false;
    doubts_.insert(doubt, {transaction, now.instruction, 0, true, {}});
    return true;
  }
  // Where all that came before it has been looked at, no more can be.
  doubt->open = doubt->first() != 0;
  return doubt->open;
}

bool Doubts::decide(std::uint64_t transaction, std::uint32_t taken_over) {
  const auto doubt = find(transaction);
  if (doubt == doubts_.end() || doubt->transaction != transaction) return true;
  if (!doubt->taken_over) doubt->taken_over = taken_over;
  return doubt->taken_over == taken_over;
}

}  // namespace citcat
