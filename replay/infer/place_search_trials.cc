// Of the search for interrupts: boundaries tried from a checkpoint.

#include <algorithm>
#include <utility>

#include "replay/infer/place_search.h"

namespace citcat {

/// Lets the interrupt happen at a boundary, and what follows, until `writes` bytes were written.
ReplayReport PlaceSearch::run_from(const BoundaryGroup& group, std::uint64_t writes) {
  const std::uint64_t most = next_is_hidden() ? 1 << 16 : 1 << 20;
  go_back(*window_);
  set_position(target_, group.first);
  mode_ = Mode::trial;
  stop_writes_ = writes;
  stop_instruction_ = group.first.instruction + most;
  const bool next = target_ + 1 < schedule_.interrupts.size() &&
                    !schedule_.interrupts[target_ + 1].position_known;
  gate_.set_limit(next && !next_is_hidden() ? &schedule_.interrupts[target_ + 1].anchor : nullptr);
  const ReplayReport report = go();
  set_position(target_, std::nullopt);
  return report;
}

PlaceSearch::Trial PlaceSearch::try_group(const BoundaryGroup& group, std::uint64_t writes) {
  ++report_.tried;
  Trial trial;
  if (run_from(group, writes).end == ReplayReport::End::diverged) {
    // The next interrupt, which nothing announces, ends the trial like any difference.
    trial.reached = verifier_->first_missing().value_or(verifier_->last_agreed() + 1);
    trial.survived = next_is_hidden() && frame_agreed(group);
  } else {
    trial.survived = true;
    trial.state = replayer_->machine().save();
    trial.io = gate_.progress().io;
  }
  return trial;
}

/// Tries every group and drops those that the traffic refutes.
std::vector<PlaceSearch::Trial> PlaceSearch::try_all(std::uint64_t writes) {
  std::vector<Trial> survivors;
  std::vector<BoundaryGroup> groups;
  for (BoundaryGroup& group : groups_) {
    Trial trial = try_group(group, writes);
    if (!trial.survived) continue;
    // Where all differ from the bus some time, those are left that agree the longest.
    if (!survivors.empty() && trial.reached > survivors.front().reached) {
      survivors.clear();
      groups.clear();
    }
    if (!survivors.empty() && trial.reached < survivors.front().reached) continue;
    survivors.push_back(std::move(trial));
    groups.push_back(std::move(group));
  }
  groups_ = std::move(groups);
  return survivors;
}

void PlaceSearch::decide_by_trial(PlacedEvent& event) {
  // A handler that saves all registers writes 32 bytes and its frame; what a register that it does
  // not save does to the traffic may show much later.
  constexpr std::uint64_t kHorizons[] = {64, 1 << 10, 1 << 14, ~std::uint64_t{0} >> 1};
  constexpr std::size_t kMaxTriedFar = 32;
  for (const std::uint64_t bytes : kHorizons) {
    if (bytes != kHorizons[0] && groups_.size() > kMaxTriedFar) break;
    const std::vector<Trial> survivors = try_all(target().anchor.writes + bytes);
    if (groups_.size() <= 1) return;
    if (survivors.front().reached != ~std::uint64_t{0}) break;
    const bool same = std::all_of(survivors.begin(), survivors.end(),
                                  [&](const Trial& t) { return t == survivors.front(); });
    if (same) {
      event.placement = Placement::equivalent;
      return;
    }
  }
  event.placement = Placement::ambiguous;
}

}  // namespace citcat
