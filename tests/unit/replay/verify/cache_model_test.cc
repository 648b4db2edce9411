// What a cache makes of a few accesses, by hand from its description.

#include "replay/verify/cache_model.h"

#include <gtest/gtest.h>

namespace citcat::test {
namespace {

using Kind = CacheTraffic::Kind;

constexpr std::uint32_t kRam = 16u << 20;
/// Between two lines of the same set: the size of a way.
constexpr std::uint32_t kI486Way = 2048, kPentiumWay = 4096;

class CacheModelTest : public testing::Test {
 protected:
  void begin(const char* name) { model_.emplace(*find_cache(name), kRam); }
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

}  // namespace
}  // namespace citcat::test
