#include "capture/inspect/byte_enables.h"

#include <algorithm>
#include <cstdint>

namespace citcat {
namespace {

// Fewer may be chance.
constexpr long kFewestRuns = 4;

/// The levels of a channel at the addresses of cycles, and their number.
struct CycleLevels {
  std::vector<bool> high;
  std::size_t count = 0, in_fetches = 0;
};

class EnableFinder {
 public:
  EnableFinder(const ChannelActivity& activity, const std::vector<UnnamedCycle>& cycles,
               const std::vector<std::size_t>& chain)
      : activity_(activity) {
    for (const UnnamedCycle& cycle : cycles) {
      if (!cycle.is_transfer()) continue;
      cycles_.push_back(cycle);
      std::uint32_t word = 0;
      for (std::size_t i = 0; i < chain.size(); ++i)
        if (at_clock(activity.at_begin(chain[i]), cycle.begin)) word |= std::uint32_t{1} << i;
      words_.push_back(word);
    }
    mask_ = (std::uint32_t{1} << chain.size()) - 1;
  }

  std::optional<ByteEnables> run(const std::vector<std::size_t>& channels) {
    std::vector<CycleLevels> levels;
    for (const std::size_t c : channels) levels.push_back(levels_of(c));
    std::optional<ByteEnables> best;
    long most = 0;
    for (std::size_t low = 0; low < channels.size(); ++low) {
      for (std::size_t high = 0; high < channels.size(); ++high) {
        if (low == high || !are_enables(levels[low], levels[high])) continue;
        const long runs = runs_of(levels[low], levels[high]);
        const bool other_way = are_enables(levels[high], levels[low]);
        const long others = other_way ? runs_of(levels[high], levels[low]) : 0;
        // If two pairs fit, the one with which more goes on is better; if that tells nothing, the
        // one that moves more.
        const auto moves = static_cast<long>(std::min(levels[low].count, levels[high].count));
        const long score = 1 + moves + static_cast<long>(cycles_.size()) * (runs - others);
        if (best && score <= most) continue;
        most = score;
        best = ByteEnables{channels[low], channels[high], runs >= kFewestRuns && runs > 2 * others};
      }
    }
    return best;
  }

 private:
  CycleLevels levels_of(std::size_t channel) const {
    CycleLevels out;
    for (const UnnamedCycle& cycle : cycles_) {
      const bool high = at_clock(activity_.at_begin(channel), cycle.begin);
      out.high.push_back(high);
      out.count += high ? 1 : 0;
      out.in_fetches += high && cycle.is_fetch() ? 1 : 0;
    }
    return out;
  }

  bool is_few(std::size_t part) const { return part * 500 <= cycles_.size(); }

  bool are_enables(const CycleLevels& low, const CycleLevels& high) const {
    if (low.count == 0 || high.count == 0 || !is_few(high.in_fetches)) return false;
    std::size_t both = 0;
    for (std::size_t i = 0; i < cycles_.size() && is_few(both); ++i)
      both += low.high[i] && high.high[i] ? 1 : 0;
    return is_few(both);
  }

  /// Cycles of a byte each that go on from one to the next, upwards.
  long runs_of(const CycleLevels& low, const CycleLevels& high) const {
    long runs = 0;
    for (std::size_t i = 1; i < cycles_.size(); ++i) {
      if (cycles_[i].status != cycles_[i - 1].status || cycles_[i].is_fetch()) continue;
      const bool was_odd = low.high[i - 1] && !high.high[i - 1];
      const bool was_even = !low.high[i - 1] && high.high[i - 1];
      const bool is_odd = low.high[i] && !high.high[i], is_even = !low.high[i] && high.high[i];
      if (was_odd && is_even && words_[i] == ((words_[i - 1] + 1) & mask_)) ++runs;
      if (was_even && is_odd && words_[i] == words_[i - 1]) ++runs;
    }
    return runs;
  }

  const ChannelActivity& activity_;
  std::vector<UnnamedCycle> cycles_;
  std::vector<std::uint32_t> words_;
  std::uint32_t mask_ = 0;
};

}  // namespace

std::optional<ByteEnables> find_byte_enables(const ChannelActivity& activity,
                                             const std::vector<UnnamedCycle>& cycles,
                                             const std::vector<std::size_t>& channels,
                                             const std::vector<std::size_t>& chain) {
  return EnableFinder(activity, cycles, chain).run(channels);
}

}  // namespace citcat
