#include "replay/infer/registers/page_map.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace citcat::test {
namespace {

class PageMapTest : public testing::Test {
 protected:
  PageMapTest() {
    put(0x1000 + 4 * 1, 0x2003);        // 00400000: table at 2000
    put(0x2000 + 4 * 5, 0x00077021);    // 00405000
    put(0x2000 + 4 * 6, 0x00077000);    // not present
    put(0x1000 + 4 * 768, 0x004000e3);  // C0000000: a large page at 00400000
    put(0x1000 + 4 * 769, 0x3003);      // C0400000: its table is not known
  }
  void put(std::uint64_t at, std::uint32_t value) { memory_[at] = value; }
  PageMap map() const { return PageMap(kTwoLevels, 0x1000, read_); }

  std::map<std::uint64_t, std::uint32_t> memory_;
  PageMap::ReadDword read_ = [this](PhysAddr at) -> std::optional<std::uint32_t> {
    const auto it = memory_.find(at.value);
    if (it == memory_.end()) return std::nullopt;
    return it->second;
  };
};

TEST_F(PageMapTest, FollowsTablesAndLargePages) {
  EXPECT_EQ(map().translate(LinearAddr{0x405123})->value, 0x77123u);
  EXPECT_EQ(map().translate(LinearAddr{0xc0012345})->value, 0x412345u);
  EXPECT_EQ(PageMap::translate(kTwoLevels, 0x1000, LinearAddr{0x405123}, read_)->value, 0x77123u);
  EXPECT_EQ(PageMap::translate(kTwoLevels, 0x1000, LinearAddr{0xc0012345}, read_)->value,
            0x412345u);
}

TEST_F(PageMapTest, WhatIsNotPresentOrNotKnownIsNowhere) {
  for (const std::uint32_t linear : {0x406000u, 0x407000u, 0xc0400000u, 0x00001000u}) {
    EXPECT_FALSE(map().translate(LinearAddr{linear})) << linear;
    EXPECT_FALSE(PageMap::translate(kTwoLevels, 0x1000, LinearAddr{linear}, read_)) << linear;
  }
}

TEST_F(PageMapTest, NamesEveryLinearAddressOfAFrameTheHighestFirst) {
  put(0x2000 + 4 * 9, 0x00400001);  // 00409000 lies in the large page's memory, too
  EXPECT_EQ(map().linear_of(PhysAddr{0x400010}),
            (std::vector<LinearAddr>{LinearAddr{0xc0000010}, LinearAddr{0x409010}}));
  EXPECT_TRUE(map().linear_of(PhysAddr{0x1000000}).empty());
}

TEST_F(PageMapTest, WithoutPagingAddressesAreTheSame) {
  EXPECT_EQ(PageMap().translate(LinearAddr{0x1234})->value, 0x1234u);
  EXPECT_EQ(PageMap().linear_of(PhysAddr{0x1234}), std::vector<LinearAddr>{LinearAddr{0x1234}});
}

TEST_F(PageMapTest, FollowsTheFourLevelsOfLongMode) {
  const auto entry = [this](std::uint32_t table, std::uint32_t index, std::uint32_t low) {
    put(table + 8 * index, low);
    put(table + 8 * index + 4, 0x80000000);  // no-execute
  };
  entry(0x10000, 273, 0x11003);   // FFFF888000000000
  entry(0x11000, 0, 0x12003);     //
  entry(0x12000, 1, 0x02000083);  // FFFF888000200000: a page of 2 MiB
  entry(0x12000, 2, 0x13003);     //
  entry(0x13000, 3, 0x00077003);  // FFFF888000403000
  entry(0x11000, 1, 0x40000083);  // FFFF888040000000: a page of 1 GiB
  const PageMap map(kFourLevels, 0x10000, read_);
  EXPECT_EQ(map.translate(LinearAddr{0xffff888000403123})->value, 0x77123u);
  EXPECT_EQ(map.translate(LinearAddr{0xffff888000212345})->value, 0x2012345u);
  EXPECT_EQ(map.translate(LinearAddr{0xffff888052345678})->value, 0x52345678u);
  EXPECT_FALSE(map.translate(LinearAddr{0xffff888000404000}));
  EXPECT_FALSE(map.translate(LinearAddr{0x403123}));
  for (const std::uint64_t linear : {0xffff888000403123, 0xffff888000212345, 0xffff888052345678}) {
    EXPECT_EQ(PageMap::translate(kFourLevels, 0x10000, LinearAddr{linear}, read_),
              map.translate(LinearAddr{linear}));
  }
  EXPECT_FALSE(PageMap::translate(kFourLevels, 0x10000, LinearAddr{0xffff888000404000}, read_));
  EXPECT_EQ(map.linear_of(PhysAddr{0x77123}), std::vector<LinearAddr>{{0xffff888000403123}});
  EXPECT_EQ(map.linear_of(PhysAddr{0x2012345}), std::vector<LinearAddr>{{0xffff888000212345}});
}

TEST_F(PageMapTest, TablesAndPagesMayLieBeyond4GiB) {
  const auto entry = [this](std::uint64_t table, std::uint32_t index, std::uint64_t value) {
    put(table + 8 * index, static_cast<std::uint32_t>(value));
    put(table + 8 * index + 4, static_cast<std::uint32_t>(value >> 32));
  };
  entry(0x10000, 0, 0x100011003);
  entry(0x100011000, 0, 0x12003);
  entry(0x12000, 0, 0x100013003);
  entry(0x12000, 1, 0x4000000083);  // a large page
  entry(0x100013000, 5, 0x100021003);
  const PageMap map(kFourLevels, 0x10000, read_);
  EXPECT_EQ(map.translate(LinearAddr{0x5123}), PhysAddr{0x100021123});
  EXPECT_FALSE(map.translate(LinearAddr{0x6123}));
  EXPECT_EQ(map.translate(LinearAddr{0x220123}), PhysAddr{0x4000020123});
  for (const std::uint64_t linear : {0x5123, 0x6123, 0x220123}) {
    EXPECT_EQ(PageMap::translate(kFourLevels, 0x10000, LinearAddr{linear}, read_),
              map.translate(LinearAddr{linear}));
  }
  EXPECT_EQ(map.linear_of(PhysAddr{0x100021123}), std::vector<LinearAddr>{{0x5123}});
  EXPECT_EQ(map.linear_of(PhysAddr{0x4000021123}), std::vector<LinearAddr>{{0x221123}});
  EXPECT_TRUE(map.linear_of(PhysAddr{0x21123}).empty());
}

}  // namespace
}  // namespace citcat::test
