#include "replay/infer/places/backtracker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "events/machine/cpu_place.h"

namespace citcat {

bool returns_there(const BoundaryGroup& group, const FrameWatch::Found& found) {
  return (instruction_pointer(group.state) & found.eip_mask) == found.eip;
}

void Backtracker::add(std::size_t event, const Candidates& candidates) {
  constexpr std::size_t kMaxChoices = 8;
  if (choices_.size() == kMaxChoices) choices_.erase(choices_.begin());
  Choice& choice = choices_.emplace_back();
  choice.event = event;
  choice.left = candidates;
  choice.left.groups.erase(choice.left.groups.begin());
  choice.taken = candidates.groups.front();
}

const Choice* Backtracker::of(std::size_t event) const {
  const auto choice = std::find_if(choices_.begin(), choices_.end(),
                                   [event](const Choice& c) { return c.event == event; });
  return choice != choices_.end() ? &*choice : nullptr;
}

void Backtracker::narrow(std::size_t event, std::vector<BoundaryGroup> left) {
  const auto choice = std::find_if(choices_.begin(), choices_.end(),
                                   [event](const Choice& c) { return c.event == event; });
  if (choice == choices_.end()) return;
  choice->left.groups = std::move(left);
  if (choice->left.groups.empty()) choices_.erase(choice);
}

bool Backtracker::revise() {
  constexpr unsigned kMaxRevisions = 64;
  if (choices_.empty() || (!run_.has_cache() && ++revisions_ > kMaxRevisions)) return false;
  Candidates& left = choices_.back().left;
  if (!run_.may_spend(0, *left.window)) return false;
  if (run_.has_cache() && !left.followed_far && left.groups.size() > 2) {
    lines_.decide(left, true);
    left.followed_far = true;
  }
  return !run_.effort().spent();
}

void Backtracker::correct(const FrameWatch::Found& found,
                          const std::function<bool(const FrameWatch::Found&)>& shows_memory) {
  choices_.erase(choices_.begin() + (of(found.id) - choices_.data()) + 1, choices_.end());
  Choice& last = choices_.back();
  const auto age = found.returned ? std::nullopt : std::optional(found.age);
  std::vector<BoundaryGroup> fitting;
  for (const BoundaryGroup& g : last.left.groups) {
    if (!returns_there(g, found)) continue;
    if (run_.may_spend(found.age, *last.left.window)) {
      lines_.run_handler(last.left, g, age);
      if (!shows_memory(found)) continue;
    }
    fitting.push_back(g);
  }
  last.left.exhausted = fitting.empty();
  if (fitting.empty()) {
    last.left.groups.insert(last.left.groups.begin(), last.taken);
  } else {
    last.left.groups = std::move(fitting);
  }
}

Choice Backtracker::take_latest() {
  Choice choice = std::move(choices_.back());
  choices_.pop_back();
  return choice;
}

}  // namespace citcat
