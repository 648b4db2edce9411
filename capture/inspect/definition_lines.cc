#include "capture/inspect/definition_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "capture/inspect/byte_enables.h"

namespace citcat {
namespace {

constexpr std::size_t kMostCounting = 23;  // A1 to A23

}  // namespace

DefinitionLines::DefinitionLines(const ChannelActivity& activity,
                                 const std::vector<UnnamedCycle>& cycles,
                                 const std::vector<std::size_t>& channels)
    : activity_(activity),
      cycles_(cycles),
      counting_(activity, cycles, channels, kMostCounting, true) {
  const auto& chain = counting_.chain();
  std::vector<std::size_t> others;
  for (const std::size_t c : channels)
    if (std::find(chain.begin(), chain.end(), c) == chain.end()) others.push_back(c);
  for (const std::size_t c : others) (counting_.is_quiet(c) ? quiet_ : data_).push_back(c);
  if (const auto enables = find_byte_enables(activity, cycles, others, chain))
    enables_ = {enables->low, enables->high};
  acknowledges_ = static_cast<std::size_t>(std::count_if(
      cycles.begin(), cycles.end(), [](const auto& cycle) { return cycle.is_acknowledge(); }));
  fetches_ = static_cast<std::size_t>(std::count_if(
      cycles.begin(), cycles.end(), [](const auto& cycle) { return cycle.is_fetch(); }));
}

std::size_t DefinitionLines::highs(std::size_t channel, bool in_fetches) const {
  return static_cast<std::size_t>(
      std::count_if(cycles_.begin(), cycles_.end(), [&](const UnnamedCycle& cycle) {
        return cycle.is_fetch() == in_fetches && level(channel, cycle);
      }));
}

/// How many words change that the channel does not say are written, ten times; and how many do not
/// that it says are.
std::size_t DefinitionLines::weight_as_write(std::size_t channel) const {
  std::map<std::vector<bool>, std::vector<bool>> memory;
  std::size_t weight = 0;
  for (const UnnamedCycle& cycle : cycles_) {
    if (cycle.is_fetch() || cycle.is_acknowledge()) continue;
    std::vector<bool> place, value;
    for (const std::size_t c : counting_.chain()) place.push_back(level(c, cycle));
    for (const std::size_t c : quiet_)
      if (c != channel && enables_.count(c) == 0) place.push_back(level(c, cycle));
    // Lines of a byte that is not moved show anything.
    const bool is_word = std::none_of(enables_.begin(), enables_.end(),
                                      [&](std::size_t c) { return level(c, cycle); });
    for (const std::size_t c : data_)
      if (enables_.count(c) == 0) value.push_back(at_clock(activity_.at_end(c), cycle.end));
    if (!is_word) {
      memory.erase(place);
      continue;
    }
    const auto [known, is_new] = memory.insert({std::move(place), value});
    if (is_new) continue;
    const bool changed = known->second != value, writes = level(channel, cycle);
    weight += changed && !writes ? 10 : !changed && writes ? 1 : 0;
    known->second = std::move(value);
  }
  return weight;
}

std::optional<std::size_t> DefinitionLines::write() const {
  const std::size_t others = cycles_.size() - fetches_;
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const std::size_t c : quiet_) {
    if (enables_.count(c) != 0 || highs(c, true) * 50 > fetches_ || highs(c, false) * 50 < others)
      continue;
    found.emplace_back(weight_as_write(c), c);
  }
  std::sort(found.begin(), found.end());
  // Two words that change are no chance.
  constexpr std::size_t kClear = 20;
  if (found.empty() || (found.size() > 1 && found[1].first < found[0].first + kClear))
    return std::nullopt;
  return found[0].second;
}

void DefinitionLines::find_acknowledges(const ChannelActivity& activity,
                                        std::vector<UnnamedCycle>& cycles,
                                        const std::vector<std::size_t>& channels) {
  const CountingLines counting(activity, cycles, channels, kMostCounting, true);
  const auto word = [&](const UnnamedCycle& cycle) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < counting.chain().size(); ++i)
      if (at_clock(activity.at_begin(counting.chain()[i]), cycle.begin))
        value |= std::size_t{1} << i;
    return value;
  };
  constexpr std::size_t kFirst = 2, kSecond = 0, kFewestLines = 5;
  if (counting.chain().size() < kFewestLines) return;
  for (std::size_t i = 1; i < cycles.size(); ++i) {
    if (!cycles[i - 1].is_fetch() || !cycles[i].is_fetch() || word(cycles[i - 1]) != kFirst ||
        word(cycles[i]) != kSecond)
      continue;
    cycles[i - 1].status = cycles[i].status = kAcknowledge;
  }
}

std::optional<std::size_t> DefinitionLines::memory() const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const std::size_t c : quiet_) {
    const std::size_t low = cycles_.size() - highs(c, true) - highs(c, false);
    if (enables_.count(c) != 0 || low < std::max<std::size_t>(1, acknowledges_) ||
        highs(c, true) * 50 < fetches_ * 49)
      continue;
    found.emplace_back(low, c);
  }
  std::sort(found.begin(), found.end());
  if (found.empty() || (found.size() > 1 && found[1].first == found[0].first)) return std::nullopt;
  return found[0].second;
}

}  // namespace citcat
