// What a cache makes of a few accesses, by hand from its description.

#include "replay/verify/cache_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <random>

namespace citcat::test {
namespace {

using Kind = CacheTraffic::Kind;

constexpr std::uint32_t kRam = 16u << 20;
/// Between two lines of the same set: the size of a way.
constexpr std::uint32_t kI486Way = 2048, kPentiumWay = 4096;

class CacheModelTest : public testing::Test {
 protected:
  void begin(const char* name) { model_.emplace(*find_cache(name), CachedMemory(kRam)); }
  /// The traffic since the last call.
  std::vector<CacheTraffic> traffic() { return std::exchange(model_->traffic(), {}); }
  void read(std::uint32_t a, std::uint32_t size = 4) { model_->read(PhysAddr{a}, size); }
  void write(std::uint32_t a, std::uint32_t size = 4) { model_->write(PhysAddr{a}, size); }
  void fetch(std::uint32_t a, std::uint32_t size = 2) { model_->fetch(PhysAddr{a}, size); }
  static CacheTraffic fill(std::uint32_t a) { return {Kind::data_fill, PhysAddr{a}}; }
  static CacheTraffic code(std::uint32_t a) { return {Kind::code_fill, PhysAddr{a}}; }
  static CacheTraffic back(std::uint32_t a) { return {Kind::write_back, PhysAddr{a}}; }
  static CacheTraffic snooped(std::uint32_t a) { return {Kind::snoop_write_back, PhysAddr{a}}; }
  using List = std::vector<CacheTraffic>;

  std::optional<CacheModel> model_;
};

TEST_F(CacheModelTest, AReadFillsItsLineOnce) {
  begin("i486");
  read(0x1004);
  read(0x100c);
  EXPECT_EQ(traffic(), (List{fill(0x1000)}));
}

TEST_F(CacheModelTest, AnAccessOverTheEndOfALineFillsBoth) {
  begin("i486");
  read(0x100e, 4);
  EXPECT_EQ(traffic(), (List{fill(0x1000), fill(0x1010)}));
}

TEST_F(CacheModelTest, TheLineNotUsedForLongestGivesWay) {
  begin("i486");
  for (std::uint32_t i = 0; i < 4; ++i) read(0x1000 + i * kI486Way);
  read(0x1000);  // now the second is the oldest
  read(0x1000 + 4 * kI486Way);
  traffic();
  read(0x1000);
  EXPECT_EQ(traffic(), List{});
  read(0x1000 + kI486Way);
  EXPECT_EQ(traffic(), (List{fill(0x1000 + kI486Way)}));
}

TEST_F(CacheModelTest, PseudoLruTakesTheOtherPair) {
  begin("i486-plru");
  for (std::uint32_t i = 0; i < 4; ++i) read(0x1000 + i * kI486Way);
  read(0x1000);                 // pair 0 was used last, way 0 within it; in pair 1 way 3
  read(0x1000 + 4 * kI486Way);  // takes way 2
  traffic();
  read(0x1000 + kI486Way);
  EXPECT_EQ(traffic(), List{});
  read(0x1000 + 2 * kI486Way);
  EXPECT_EQ(traffic(), (List{fill(0x1000 + 2 * kI486Way)}));
}

TEST_F(CacheModelTest, AStoreThatMissesAWriteThroughCacheFillsNothing) {
  begin("i486");
  write(0x1000);
  EXPECT_EQ(traffic(), List{});
  read(0x1000);
  EXPECT_EQ(traffic(), (List{fill(0x1000)}));
}

TEST_F(CacheModelTest, AStoreThatMissesAWriteBackCacheFillsItsLine) {
  begin("pentium");
  write(0x1000);
  EXPECT_EQ(traffic(), (List{fill(0x1000)}));
}

TEST_F(CacheModelTest, AModifiedLineIsWrittenBackBeforeItsPlaceIsFilled) {
  begin("pentium");
  write(0x1000);
  for (std::uint32_t i = 1; i < 4; ++i) read(0x1000 + i * kPentiumWay);
  traffic();
  read(0x1000 + 4 * kPentiumWay);
  EXPECT_EQ(traffic(), (List{back(0x1000), fill(0x1000 + 4 * kPentiumWay)}));
}

TEST_F(CacheModelTest, AnUnmodifiedLineLeavesWithoutAWord) {
  begin("pentium");
  for (std::uint32_t i = 0; i < 5; ++i) read(0x1000 + i * kPentiumWay);
  for (const CacheTraffic& t : traffic()) EXPECT_EQ(t.kind, Kind::data_fill);
}

TEST_F(CacheModelTest, CodeAndDataHaveTheirOwnCachesWhereTheyAreSplit) {
  begin("pentium");
  fetch(0x1000);
  read(0x1000);
  EXPECT_EQ(traffic(), (List{code(0x1000), fill(0x1000)}));
  begin("i486");
  fetch(0x1000);
  read(0x1000);
  EXPECT_EQ(traffic(), (List{code(0x1000)}));
}

TEST_F(CacheModelTest, AStoreTakesItsLineOutOfTheCodeCache) {
  begin("pentium");
  fetch(0x1000);
  write(0x1000);
  traffic();
  fetch(0x1000);
  // What was stored must be in memory before code is filled from there.
  EXPECT_EQ(traffic(), (List{snooped(0x1000), code(0x1000)}));
  model_->flush();
  EXPECT_EQ(traffic(), List{}) << "the line was still modified";
}

TEST_F(CacheModelTest, AFlushWritesModifiedLinesBackAndEmptiesTheCache) {
  begin("pentium");
  write(0x2000);
  read(0x3000);
  traffic();
  model_->flush();
  EXPECT_EQ(traffic(), (List{back(0x2000)}));
  read(0x3000);
  EXPECT_EQ(traffic(), (List{fill(0x3000)}));
}

TEST_F(CacheModelTest, AnotherMastersWriteTakesTheLineAway) {
  begin("pentium");
  write(0x1000);
  read(0x2000);
  traffic();
  model_->snoop_write(PhysAddr{0x1000}, 64);
  model_->snoop_write(PhysAddr{0x2000}, 4);
  EXPECT_EQ(traffic(), (List{snooped(0x1000)}));
  read(0x1000);
  read(0x2000);
  EXPECT_EQ(traffic(), (List{fill(0x1000), fill(0x2000)}));
}

TEST_F(CacheModelTest, AnotherMastersReadLeavesTheLineUnmodified) {
  begin("pentium");
  write(0x1000);
  model_->snoop_read(PhysAddr{0x1000});
  traffic();
  read(0x1000);
  model_->flush();
  EXPECT_EQ(traffic(), List{});
}

TEST_F(CacheModelTest, APlaceThatBecameFreeIsTakenFirst) {
  begin("i486");
  for (std::uint32_t i = 0; i < 4; ++i) read(0x1000 + i * kI486Way);
  model_->snoop_write(PhysAddr{0x1000 + 3 * kI486Way}, 4);
  read(0x1000 + 4 * kI486Way);
  traffic();
  for (std::uint32_t i = 0; i < 3; ++i) read(0x1000 + i * kI486Way);
  EXPECT_EQ(traffic(), List{});
}

TEST_F(CacheModelTest, NothingIsFilledWhileItIsDisabledAndHitsAreServed) {
  begin("pentium");
  write(0x1000);
  traffic();
  model_->set_disabled(true);
  read(0x2000);
  write(0x3000);
  write(0x1004);
  EXPECT_EQ(traffic(), List{});
  EXPECT_TRUE(model_->writes_through(PhysAddr{0x3000}));
  EXPECT_FALSE(model_->writes_through(PhysAddr{0x1004}));
}

TEST_F(CacheModelTest, VideoMemoryRomAndWhatLiesBeyondRamAreNotCached) {
  begin("pentium");
  for (const std::uint32_t a : {0xa0000u, 0xb8000u, 0xfffffu, kRam, 0xfee00000u}) {
    read(a & ~3u);
    write(a & ~3u);
    EXPECT_TRUE(model_->writes_through(PhysAddr{a & ~3u}));
  }
  EXPECT_EQ(traffic(), List{});
  model_->learn_uncacheable(5);
  read(0x5000);
  read(0x6000);
  EXPECT_EQ(traffic(), (List{fill(0x6000)}));
}

TEST_F(CacheModelTest, AFillThatTheBusShowedIsTakenOver) {
  begin("i486");
  model_->learn_fill(PhysAddr{0x1000}, false);
  EXPECT_EQ(traffic(), List{});
  read(0x1000);
  EXPECT_EQ(traffic(), List{});
}

TEST_F(CacheModelTest, IsChosenByWhatTheCaptureDeclares) {
  BusModel bus;
  EXPECT_EQ(declared_cache(bus), nullptr);
  bus.form = CacheForm::write_through;
  bus.line_bytes = 16;
  EXPECT_STREQ(declared_cache(bus)->name, "i486");
  bus.line_bytes = 32;
  EXPECT_EQ(declared_cache(bus), nullptr);
  bus.form = CacheForm::write_back;
  EXPECT_STREQ(declared_cache(bus)->name, "pentium");
  bus.line_bytes = 16;
  EXPECT_STREQ(declared_cache(bus)->name, "write-back");
}

// ---- Against a slow model -----------------------------------------------------------------------

/// What an LRU cache does, written down as simply as may be: a list for each set, the line used
/// last in front.
class SlowCache {
 public:
  explicit SlowCache(const CacheDescriptor& d)
      : d_(d), sets_(d.bytes / d.line_bytes / d.ways), caches_{Cache(sets_), Cache(sets_)} {}

  void use(std::uint32_t line, bool code) {
    Cache& cache = caches_[code && d_.split ? 1 : 0];
    if (Entry* const held = find(cache, line)) return to_front(cache, *held);
    if (code && d_.split) snoop_read(line);
    if (!disabled) fill(cache, line, code ? Kind::code_fill : Kind::data_fill);
  }
  void store(std::uint32_t line) {
    if (d_.split) drop(caches_[1], line);
    Cache& cache = caches_[0];
    if (Entry* const held = find(cache, line)) {
      if (d_.write_hit_is_use) to_front(cache, *held);
    } else if (d_.allocates_on_write && !disabled) {
      fill(cache, line, Kind::data_fill);
    }
    Entry* const stored = find(cache, line);
    if (stored != nullptr && d_.form == CacheForm::write_back) stored->modified = true;
  }
  void snoop_read(std::uint32_t line) {
    Entry* const held = find(caches_[0], line);
    if (held == nullptr || !held->modified) return;
    tell(Kind::snoop_write_back, line);
    held->modified = false;
  }
  void snoop_write(std::uint32_t line) {
    snoop_read(line);
    for (Cache& cache : caches_) drop(cache, line);
  }
  void flush() {
    for (const Set& set : caches_[0]) {
      for (std::uint32_t way = 0; way < d_.ways; ++way) {
        for (const Entry& e : set) {
          if (e.way == way && e.modified) tell(Kind::write_back, e.line);
        }
      }
    }
    caches_ = {Cache(sets_), Cache(sets_)};
  }
  bool disabled = false;
  std::vector<CacheTraffic> traffic;

 private:
  struct Entry {
    std::uint32_t line, way;
    bool modified;
  };
  using Set = std::list<Entry>;
  using Cache = std::vector<Set>;

  void tell(Kind kind, std::uint32_t line) {
    traffic.push_back({kind, PhysAddr{line * d_.line_bytes}});
  }
  Entry* find(Cache& cache, std::uint32_t line) const {
    for (Entry& e : cache[line % sets_]) {
      if (e.line == line) return &e;
    }
    return nullptr;
  }
  void drop(Cache& cache, std::uint32_t line) const {
    cache[line % sets_].remove_if([&](const Entry& e) { return e.line == line; });
  }
  void to_front(Cache& cache, const Entry& held) const {
    const Entry e = held;
    drop(cache, e.line);
    cache[e.line % sets_].push_front(e);
  }
  void fill(Cache& cache, std::uint32_t line, Kind kind) {
    Set& set = cache[line % sets_];
    std::uint32_t way = 0;
    const auto taken = [&](const Entry& e) { return e.way == way; };
    while (way < d_.ways && std::any_of(set.begin(), set.end(), taken)) ++way;
    if (way == d_.ways) {
      way = set.back().way;
      if (set.back().modified) tell(Kind::write_back, set.back().line);
      set.pop_back();
    }
    set.push_front({line, way, false});
    tell(kind, line);
  }

  CacheDescriptor d_;
  std::uint32_t sets_;
  std::array<Cache, 2> caches_;  ///< data (or all), code
};

TEST(CachedMemory, IsMemoryBelowAndBeyond4GiBButNoDevice) {
  const CachedMemory memory(0x8000000);
  EXPECT_TRUE(memory.has(PhysAddr{0x7ffffff}));
  EXPECT_TRUE(memory.has(PhysAddr{0x100005010}));
  EXPECT_FALSE(memory.has(PhysAddr{0xc0006010}));
  EXPECT_FALSE(memory.has(PhysAddr{0xa0000}));
  EXPECT_TRUE(CachedMemory(0).has(PhysAddr{0xc0005010})) << "how much there is is not known";
}

void expect_like_slow_cache(const CacheDescriptor& d) {
  CacheModel model(d, CachedMemory(kRam));
  SlowCache slow(d);
  std::mt19937 random(d.ways);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  // Few sets, and somewhat more lines for each than it has ways.
  const std::uint32_t way_bytes = d.bytes / d.ways;
  for (unsigned n = 0; n < 20'000; ++n) {
    const std::uint32_t line = below(4) + below(d.ways + 2) * (way_bytes / d.line_bytes);
    const PhysAddr at{line * d.line_bytes + below(d.line_bytes)};
    // What was used last is used again more often than not.
    for (unsigned again = below(3); again != ~0u; --again) {
      bool may_move = true;
      switch (const unsigned what = below(100); what) {
        case 0:
          model.flush(), slow.flush();
          break;
        case 1:
        case 2:
          model.snoop_read(at), slow.snoop_read(line);
          break;
        case 3:
        case 4:
          model.snoop_write(at, 1), slow.snoop_write(line);
          break;
        case 5:
          slow.disabled = below(8) == 0;
          model.set_disabled(slow.disabled);
          break;
        default:
          may_move = what % 3 == 0   ? model.write(at, 1)
                     : what % 3 == 1 ? model.read(at, 1)
                                     : model.fetch_line(at);
          what % 3 == 0 ? slow.store(line) : slow.use(line, what % 3 == 2);
          break;
      }
      ASSERT_EQ(model.traffic(), slow.traffic) << d.name << " " << n;
      ASSERT_TRUE(may_move || slow.traffic.empty()) << d.name << " " << n;
      model.traffic().clear();
      slow.traffic.clear();
    }
  }
}

TEST(CacheModel, DoesWhatAListOfLinesForEachSetDoes) {
  for (const char* const name : {"i486", "pentium", "write-back"}) {
    expect_like_slow_cache(*find_cache(name));
  }
}

TEST(CacheModel, DoesSoWithAnyNumberOfWaysAndHabit) {
  for (const std::uint32_t ways : {1u, 2u, 8u}) {
    for (unsigned habits = 0; habits < 16; ++habits) {
      CacheDescriptor d;
      d.name = "as given";
      d.form = (habits & 1) != 0 ? CacheForm::write_back : CacheForm::write_through;
      d.bytes = 4096;
      d.ways = ways;
      d.line_bytes = 32;
      d.split = (habits & 2) != 0;
      d.allocates_on_write = (habits & 4) != 0;
      d.write_hit_is_use = (habits & 8) != 0;
      expect_like_slow_cache(d);
    }
  }
}

}  // namespace
}  // namespace citcat::test
