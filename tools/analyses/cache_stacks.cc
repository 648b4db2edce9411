#include "tools/analyses/cache_stacks.h"

#include <algorithm>
#include <bit>

namespace citcat::tools {

CacheStacks::CacheStacks(unsigned line_shift, unsigned least_sets_log2, unsigned most_sets_log2)
    : line_shift_(line_shift), least_sets_log2_(least_sets_log2), stack_(line_shift) {
  Set empty;
  empty.fill(kHole);
  for (unsigned k = least_sets_log2; k <= most_sets_log2; ++k) {
    Level& level = levels_.emplace_back();
    level.mask = (1u << k) - 1;
    level.sets.assign(std::size_t{1} << k, empty);
  }
}

/// Puts the line on top; how deep it was, kMaxWays where it is in none. A hole above it is filled:
/// who had the line keeps the room it has, and who had not takes the hole instead of another line's
/// place.
unsigned CacheStacks::touch(Set& set, std::uint64_t line) {
  unsigned depth = 0;
  while (depth < kMaxWays && set[depth] != line) ++depth;
  unsigned last = std::min(depth, kMaxWays - 1);  ///< whose place is given up
  for (unsigned hole = 0; hole < last; ++hole) {
    if (set[hole] != kHole) continue;
    if (depth < kMaxWays) set[depth] = kHole;
    last = hole;
    break;
  }
  for (unsigned i = last; i != 0; --i) set[i] = set[i - 1];
  set[0] = line;
  return depth;
}

void CacheStacks::access(std::uint64_t line, bool code, unsigned part) {
  const unsigned bits = stack_.use(line);
  if (bits == 0) return;  // the latest of all is the latest of every set
  const bool counts = part != kUncounted;
  if (bits != ReuseStack::kNew) {
    distances_[bits] += counts ? 1 : 0;
  } else {
    const bool is_first = seen_.insert(line).second;
    if (counts) ++(is_first ? first_ : taken_away_);
  }
  for (Level& level : levels_) {
    Set& set = level.sets[line & level.mask];
    // Latest of few sets is latest of more.
    if (set[0] == line) return;
    CacheFills& count = level.at_depth[touch(set, line)][part];
    ++(code ? count.code : count.data);
  }
}

void CacheStacks::take_away(std::uint64_t line) {
  stack_.take_away(line);
  for (Level& level : levels_) {
    Set& set = level.sets[line & level.mask];
    std::replace(set.begin(), set.end(), line, kHole);
  }
}

void CacheStacks::flush() {
  for (Level& level : levels_) {
    for (Set& set : level.sets) set.fill(kHole);
  }
  stack_ = ReuseStack(line_shift_);
}

CacheFills CacheStacks::fills(unsigned sets_log2, unsigned ways, unsigned part) const {
  CacheFills sum;
  const auto& at_depth = level(sets_log2).at_depth;
  for (unsigned depth = ways; depth <= kMaxWays; ++depth) sum = sum + at_depth[depth][part];
  return sum;
}

CacheCauses CacheStacks::causes(unsigned sets_log2, unsigned ways) const {
  CacheCauses causes{first_, taken_away_, 0, 0};
  // A line after 2^k others or more has at least k + 1 bits of distance.
  const auto lines_log2 = sets_log2 + static_cast<unsigned>(std::bit_width(ways)) - 1;
  for (std::size_t bits = lines_log2 + 1; bits < distances_.size(); ++bits) {
    causes.capacity += distances_[bits];
  }
  const CacheFills all = fills(sets_log2, ways, kRest) + fills(sets_log2, ways, kPrograms);
  causes.conflict = static_cast<std::int64_t>(all.code + all.data) -
                    static_cast<std::int64_t>(first_ + taken_away_ + causes.capacity);
  return causes;
}

}  // namespace citcat::tools
