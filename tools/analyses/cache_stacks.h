#pragma once
// The fills of LRU caches of many shapes, computed in one pass.

#include <array>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "tools/analyses/cache_feed.h"
#include "tools/analyses/reuse_stack.h"

namespace citcat::tools {

/// Why a cache had to fill a line (Hill, Aspects of Cache Memory and Instruction Buffer
/// Performance, thesis, Berkeley 1987): it was the first time; somebody had taken the line away, or
/// the cache was emptied; a cache of this size that may keep any line anywhere would not have had
/// it either; or only its place in a set was contended for. The last is below 0 where such a cache
/// does worse.
struct CacheCauses {
  std::uint64_t first = 0, taken_away = 0, capacity = 0;
  std::int64_t conflict = 0;
  CacheCauses operator+(const CacheCauses& o) const {
    return {first + o.first, taken_away + o.taken_away, capacity + o.capacity,
            conflict + o.conflict};
  }
};

/// All caches with one size of line whose numbers of sets are powers of two, with LRU, of which
/// every access that misses fills the line. What is in the fewer ways, or sets, is then also in the
/// more: one stack of lines for each set of each number of sets tells for any number of ways
/// whether a line was there (Mattson et al., IBM Systems J. 9(2), 1970; Hill and Smith, IEEE Trans.
/// Computers 38(12), 1989).
class CacheStacks {
 public:
  static constexpr unsigned kMaxWays = CacheModel::kMaxWays;

  /// For 2^least_sets_log2 to 2^most_sets_log2 sets of lines of 2^line_shift bytes.
  CacheStacks(unsigned line_shift, unsigned least_sets_log2, unsigned most_sets_log2);

  unsigned line_shift() const { return line_shift_; }
  /// `line`: an address without its lowest line_shift() bits.
  void access(std::uint64_t line, bool code, unsigned part);
  /// Another bus master wrote it.
  void take_away(std::uint64_t line);
  void flush();

  /// Lines that a cache of so many sets and ways filled in a part of the run. `ways`: 1 to
  /// kMaxWays.
  CacheFills fills(unsigned sets_log2, unsigned ways, unsigned part) const;
  CacheCauses causes(unsigned sets_log2, unsigned ways) const;

 private:
  static constexpr std::uint64_t kHole = ~std::uint64_t{0};  ///< no line: addresses are shorter
  using Set = std::array<std::uint64_t, kMaxWays>;
  using Sides = std::array<CacheFills, 3>;  ///< by part
  /// All caches with one number of sets.
  struct Level {
    std::uint32_t mask = 0;
    std::vector<Set> sets;  ///< lines of each, the latest first
    /// Accesses whose line was after so many others of its set, or after all.
    std::array<Sides, kMaxWays + 1> at_depth;
  };

  static unsigned touch(Set& set, std::uint64_t line);
  const Level& level(unsigned sets_log2) const { return levels_[sets_log2 - least_sets_log2_]; }

  unsigned line_shift_, least_sets_log2_;
  std::vector<Level> levels_;  ///< the least number of sets first
  ReuseStack stack_;           ///< of caches that keep any line anywhere
  std::unordered_set<std::uint64_t> seen_;
  std::uint64_t first_ = 0, taken_away_ = 0;
  std::array<std::uint64_t, 34> distances_{};  ///< accesses by bits of the lines since
};

}  // namespace citcat::tools
