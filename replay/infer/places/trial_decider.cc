#include "replay/infer/places/trial_decider.h"

#include <algorithm>
#include <utility>

#include "events/machine/cpu_place.h"

namespace citcat {

namespace {

/// Bytes that an interrupt at the boundary pushes at most before its handler begins.
std::uint64_t frame_bytes(const CpuState& state) {
  constexpr std::uint32_t kFlagVm = 1u << 17;
  if ((state.cr0 & 1) == 0) return 6;
  // In long mode SS and RSP always, eight bytes each (Intel SDM vol. 3, 6.14.2).
  if (is_in_long_mode(state)) return 40;
  // Intel SDM vol. 3, figure 21-5, and 6.12.1: with a change of stacks and without.
  if ((state.eflags & kFlagVm) != 0) return 36;
  return (state.segment[kCs].selector & 3) != 0 ? 20 : 12;
}

}  // namespace

/// In the trial that has ended everything that the interrupt pushed at `group` was on the bus.
bool TrialDecider::frame_agreed(std::size_t interrupt, const BoundaryGroup& group) const {
  const AnchorGate::Progress& made = run_.gate().progress();
  const BusAnchor& anchor = run_.interrupt(interrupt).anchor;
  return made.io > anchor.io || made.writes > anchor.writes + frame_bytes(group.state);
}

TrialDecider::Trial TrialDecider::try_group(const Candidates& candidates,
                                            const BoundaryGroup& group, std::uint64_t writes) {
  run_.effort().note_try();
  const std::size_t interrupt = candidates.interrupt;
  Trial trial;
  const ReplayReport report = run_.run_with(interrupt, group.first, *candidates.window, writes);
  if (report.end == ReplayReport::End::diverged) {
    // The next interrupt, which nothing announces, ends the trial like any difference.
    const Verifier& verifier = run_.verifier();
    trial.reached = verifier.first_missing().value_or(verifier.last_agreed() + 1);
    trial.survived = run_.next_is_hidden(interrupt) && frame_agreed(interrupt, group);
  } else {
    trial.survived = true;
    trial.state = run_.machine().save();
    trial.io = run_.gate().progress().io;
  }
  return trial;
}

/// Tries every group and drops those that the traffic refutes.
std::vector<TrialDecider::Trial> TrialDecider::try_all(Candidates& candidates,
                                                       std::uint64_t writes) {
  std::vector<Trial> survivors;
  std::vector<BoundaryGroup> groups;
  for (BoundaryGroup& group : candidates.groups) {
    Trial trial = try_group(candidates, group, writes);
    if (run_.interrupted()) break;
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
  candidates.groups = std::move(groups);
  return survivors;
}

Placement TrialDecider::decide(Candidates& candidates) {
  // A handler that saves all registers writes 32 bytes and its frame; what a register that it does
  // not save does to the traffic may show much later.
  constexpr std::uint64_t kHorizons[] = {64, 1 << 10, 1 << 14, ~std::uint64_t{0} >> 1};
  constexpr std::size_t kMaxTriedFar = 32;
  const std::uint64_t before = run_.interrupt(candidates.interrupt).anchor.writes;
  for (const std::uint64_t bytes : kHorizons) {
    if (bytes != kHorizons[0] && candidates.groups.size() > kMaxTriedFar) break;
    const std::vector<Trial> survivors = try_all(candidates, before + bytes);
    if (candidates.groups.size() <= 1) return Placement::unique;
    if (survivors.front().reached != ~std::uint64_t{0}) break;
    const bool same = std::all_of(survivors.begin(), survivors.end(),
                                  [&](const Trial& t) { return t == survivors.front(); });
    if (same) return Placement::equivalent;
  }
  return Placement::ambiguous;
}

}  // namespace citcat
