// Caches of many shapes from stacks, held to caches that are kept line by line.

#include "tools/analyses/cache_stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>
#include <vector>

namespace citcat::tools {
namespace {

/// One cache, as it is described: of a full set the line not used for longest gives way.
class SlowCache {
 public:
  SlowCache(std::size_t sets, std::size_t ways) : sets_(sets), ways_(ways) {}
  void access(std::uint32_t line) {
    std::list<std::uint32_t>& set = sets_[line % sets_.size()];
    const auto found = std::find(set.begin(), set.end(), line);
    if (found == set.end()) {
      ++fills;
      if (set.size() == ways_) set.pop_back();
    } else {
      set.erase(found);
    }
    set.push_front(line);
  }
  void take_away(std::uint32_t line) { sets_[line % sets_.size()].remove(line); }
  void flush() {
    for (auto& set : sets_) set.clear();
  }
  std::uint64_t fills = 0;

 private:
  std::vector<std::list<std::uint32_t>> sets_;
  std::size_t ways_;
};

struct Shape {
  unsigned sets_log2, ways;
};
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (unsigned sets = 0; sets <= 5; ++sets) {
    for (const unsigned ways : {1u, 2u, 4u, 8u}) all.push_back({sets, ways});
  }
  return all;
}

/// Accesses that come back to some lines and wander; now and then a line goes, or all of them.
template <class Access, class TakeAway, class Flush>
void wander(unsigned seed, Access access, TakeAway take_away, Flush flush) {
  std::mt19937 engine(seed);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  std::uint32_t near = 0;
  for (int i = 0; i < 20000; ++i) {
    if (random() % 50 == 0) near = random() % 400;
    const std::uint32_t line = near + random() % 40;
    if (random() % 23 == 0) {
      take_away(line);
    } else if (random() % 3001 == 0) {
      flush();
    } else {
      access(line, random() % 2 == 0);
    }
  }
}

TEST(CacheStacks, FillWhatEachOfTheCachesFills) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CacheStacks stacks(4, 0, 5);
    std::vector<SlowCache> slow;
    for (const Shape s : shapes()) slow.emplace_back(std::size_t{1} << s.sets_log2, s.ways);
    wander(
        seed,
        [&](std::uint32_t line, bool code) {
          stacks.access(line, code, code ? kPrograms : kRest);
          for (SlowCache& c : slow) c.access(line);
        },
        [&](std::uint32_t line) {
          stacks.take_away(line);
          for (SlowCache& c : slow) c.take_away(line);
        },
        [&] {
          stacks.flush();
          for (SlowCache& c : slow) c.flush();
        });
    for (std::size_t i = 0; i < slow.size(); ++i) {
      const Shape s = shapes()[i];
      const CacheFills rest = stacks.fills(s.sets_log2, s.ways, kRest);
      const CacheFills programs = stacks.fills(s.sets_log2, s.ways, kPrograms);
      EXPECT_EQ(rest.data + programs.code, slow[i].fills)
          << seed << ": " << s.sets_log2 << ", " << s.ways;
      EXPECT_EQ(rest.code + programs.data, 0U);
    }
  }
}

TEST(CacheStacks, SayWhyOfEachFill) {
  CacheStacks stacks(4, 0, 5);
  std::set<std::uint32_t> seen;
  std::uint64_t first = 0;
  std::vector<SlowCache> any_place;  ///< by the logarithm of the number of lines
  for (unsigned lines = 0; lines <= 8; ++lines) any_place.emplace_back(1, std::size_t{1} << lines);
  SlowCache endless(1, 1u << 20);
  wander(
      9,
      [&](std::uint32_t line, bool code) {
        stacks.access(line, code, kRest);
        if (seen.insert(line).second) ++first;
        for (SlowCache& c : any_place) c.access(line);
        endless.access(line);
      },
      [&](std::uint32_t line) {
        stacks.take_away(line);
        for (SlowCache& c : any_place) c.take_away(line);
        endless.take_away(line);
      },
      [&] {
        stacks.flush();
        for (SlowCache& c : any_place) c.flush();
        endless.flush();
      });
  for (const Shape s : shapes()) {
    const CacheCauses causes = stacks.causes(s.sets_log2, s.ways);
    const CacheFills fills = stacks.fills(s.sets_log2, s.ways, kRest);
    const auto lines_log2 = s.sets_log2 + static_cast<unsigned>(std::countr_zero(s.ways));
    EXPECT_EQ(causes.first, first);
    EXPECT_EQ(causes.first + causes.taken_away, endless.fills);
    EXPECT_EQ(causes.first + causes.taken_away + causes.capacity, any_place[lines_log2].fills);
    EXPECT_EQ(static_cast<std::int64_t>(fills.code + fills.data),
              static_cast<std::int64_t>(any_place[lines_log2].fills) + causes.conflict);
  }
}

}  // namespace
}  // namespace citcat::tools
