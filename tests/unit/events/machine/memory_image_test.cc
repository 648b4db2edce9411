#include "events/machine/memory_image.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace citcat {
namespace {

TEST(MemoryImage, KnowsOnlyWhatWasSet) {
  MemoryImage image;
  EXPECT_TRUE(image.empty());
  EXPECT_EQ(image.byte(PhysAddr{5}), std::nullopt);
  image.set(PhysAddr{5}, 0);
  EXPECT_EQ(image.byte(PhysAddr{5}), 0);
  EXPECT_EQ(image.byte(PhysAddr{6}), std::nullopt);
  EXPECT_EQ(image.byte(PhysAddr{5 + kPageSize}), std::nullopt);
  EXPECT_EQ(image.byte_count(), 1U);
}

TEST(MemoryImage, AgreesWithAPlainMapOfBytes) {
  MemoryImage image;
  std::map<std::uint32_t, std::uint8_t> model;
  std::mt19937 random(1);
  for (int n = 0; n < 3000; ++n) {
    const auto address = static_cast<std::uint32_t>(random() % 40000);
    std::vector<std::uint8_t> bytes(random() % (n % 50 == 0 ? 9000 : 9));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(random());
      model[address + static_cast<std::uint32_t>(i)] = bytes[i];
    }
    image.set(PhysAddr{address}, bytes);
  }
  EXPECT_EQ(image.byte_count(), model.size());
  const MemoryImage copy = image.clone();
  for (const auto& [address, value] : model) {
    ASSERT_EQ(image.byte(PhysAddr{address}), value);
    ASSERT_EQ(copy.byte(PhysAddr{address}), value);
  }
}

TEST(MemoryImage, WrapsAtTheEndOfTheAddressSpace) {
  MemoryImage image;
  image.set(PhysAddr{0xfffffffe}, std::vector<std::uint8_t>{1, 2, 3});
  EXPECT_EQ(image.byte(PhysAddr{0xffffffff}), 2);
  EXPECT_EQ(image.byte(PhysAddr{0}), 3);
}

TEST(MemoryImage, ClonesShareNothing) {
  MemoryImage image;
  image.set(PhysAddr{1}, 1);
  MemoryImage copy = image.clone();
  copy.set(PhysAddr{1}, 2);
  EXPECT_EQ(image.byte(PhysAddr{1}), 1);
}

TEST(MemoryImage, KeepsReferencesToPagesValid) {
  MemoryImage image;
  MemoryImage::Page& first = image.page(7);
  for (std::uint32_t n = 0; n < 1000; ++n) image.page(n).data[0] = 1;
  EXPECT_EQ(&first, &image.page(7));
  EXPECT_EQ(image.find(5000), nullptr);
}

}  // namespace
}  // namespace citcat
