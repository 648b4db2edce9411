#include "capture/inspect/counting_lines.h"

#include <algorithm>
#include <set>
#include <utility>

namespace citcat {

CountingLines::CountingLines(const ChannelActivity& activity,
                             const std::vector<UnnamedCycle>& cycles,
                             const std::vector<std::size_t>& channels, std::size_t most,
                             bool other_levels)
    : activity_(activity), channels_(channels), most_(most) {
  for (const UnnamedCycle& cycle : cycles)
    if (cycle.is_fetch()) fetches_.push_back(cycle.begin);
  find(pairs(!other_levels));
  if (!other_levels || chain_.empty()) return;
  // Once it is known which channels are no addresses, the fetches of a loop are known to be equal.
  std::erase_if(channels_, [&](std::size_t channel) {
    return std::find(chain_.begin(), chain_.end(), channel) == chain_.end() && !is_quiet(channel);
  });
  chain_.clear();
  find(pairs(true));
}

bool CountingLines::changes(std::size_t channel, const Pair& pair) const {
  const ClockBits& levels = activity_.at_begin(channel);
  return at_clock(levels, pair.from) != at_clock(levels, pair.to);
}

/// Neighbouring fetches; with `distinct`, those of a loop that runs often only once: a jump that is
/// taken a thousand times would look like a thousand steps.
std::vector<CountingLines::Pair> CountingLines::pairs(bool distinct) const {
  std::set<std::vector<bool>> seen;
  std::vector<Pair> pairs;
  for (std::size_t i = 1; i < fetches_.size(); ++i) {
    std::vector<bool> levels;
    for (const std::size_t c : channels_) {
      levels.push_back(at_clock(activity_.at_begin(c), fetches_[i - 1]));
      levels.push_back(at_clock(activity_.at_begin(c), fetches_[i]));
    }
    if (!distinct || seen.insert(std::move(levels)).second)
      pairs.push_back({fetches_[i - 1], fetches_[i]});
  }
  return pairs;
}

/// How well a channel fits as the next line: the wraps it follows less the other changes, as parts
/// of one; nothing when it is none.
std::optional<double> CountingLines::fit(std::size_t channel,
                                         const std::vector<Pair>& pairs) const {
  constexpr double kFewestWraps = 3, kMany = 32;
  double wraps = 0, followed = 0, stays = 0, other = 0;
  for (const Pair& pair : pairs) {
    const bool changed = pair.step != Step::broken && changes(channel, pair);
    wraps += pair.step == Step::wraps ? 1 : 0;
    stays += pair.step == Step::stays ? 1 : 0;
    followed += pair.step == Step::wraps && changed ? 1 : 0;
    other += pair.step == Step::stays && changed ? 1 : 0;
  }
  // A line above the next one follows half of them; what jumps do weighs more among few.
  const double enough = wraps < kMany ? 0.75 : 0.65, too_many = stays < kMany ? 0.1 : 0.2;
  if (wraps < kFewestWraps || followed < enough * wraps || other > too_many * stays)
    return std::nullopt;
  return followed / wraps - (stays > 0 ? other / stays : 0);
}

void CountingLines::advance(std::size_t channel, std::vector<Pair>& pairs) const {
  for (Pair& pair : pairs) {
    if (pair.step == Step::broken) continue;
    if (changes(channel, pair) != (pair.step == Step::wraps)) {
      pair.step = Step::broken;
    } else if (pair.step == Step::wraps && at_clock(activity_.at_begin(channel), pair.to)) {
      pair.step = Step::stays;
    }
  }
}

/// The lines from `first` on as far as they are seen to count.
std::vector<std::size_t> CountingLines::chain_from(std::size_t first,
                                                   std::vector<Pair>& pairs) const {
  std::vector<std::size_t> chain{first};
  advance(first, pairs);
  while (chain.size() < most_) {
    std::optional<std::pair<double, std::size_t>> best;
    bool alone = false;
    for (const std::size_t c : channels_) {
      if (std::find(chain.begin(), chain.end(), c) != chain.end()) continue;
      const auto fits = fit(c, pairs);
      if (!fits || (best && *fits < best->first)) continue;
      alone = !best || *fits > best->first;
      best = {*fits, c};
    }
    // A line above the next one changes in half of the wraps that it does, or by chance in as many.
    if (!alone) break;
    chain.push_back(best->second);
    advance(best->second, pairs);
  }
  return chain;
}

void CountingLines::find(const std::vector<Pair>& pairs) {
  constexpr std::size_t kTried = 6;
  std::vector<std::pair<std::size_t, std::size_t>> by_changes;
  for (const std::size_t c : channels_)
    by_changes.emplace_back(std::count_if(pairs.begin(), pairs.end(),
                                          [&](const Pair& pair) { return changes(c, pair); }),
                            c);
  std::sort(by_changes.rbegin(), by_changes.rend());
  for (std::size_t i = 0; i < std::min(kTried, by_changes.size()); ++i) {
    std::vector<Pair> followed = pairs;
    std::vector<std::size_t> chain = chain_from(by_changes[i].second, followed);
    if (chain.size() <= chain_.size()) continue;
    chain_ = std::move(chain);
    steps_ = std::move(followed);
  }
}

std::size_t CountingLines::steps() const {
  return static_cast<std::size_t>(std::count_if(
      steps_.begin(), steps_.end(), [](const Pair& pair) { return pair.step == Step::stays; }));
}

std::size_t CountingLines::odd_steps(std::size_t channel) const {
  return static_cast<std::size_t>(std::count_if(
      steps_.begin(), steps_.end(),
      [&](const Pair& pair) { return pair.step == Step::stays && changes(channel, pair); }));
}

}  // namespace citcat
