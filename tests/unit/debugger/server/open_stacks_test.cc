#include "debugger/server/open_stacks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace citcat {
namespace {

constexpr AddressSpaceId kProgram = 0x1000, kKernel = OpenStacks::kSupervisor;

class OpenStacksTest : public testing::Test {
 protected:
  void call(AddressSpaceId space, std::uint64_t slot) {
    OpenCall call;
    call.slot = LinearAddr{slot};
    call.space = space;
    stacks_.call(call);
  }
  void lends(std::uint64_t at) { stacks_.leave(OpenStacks::Leave::lend, LinearAddr{at}); }
  void switches(std::uint64_t at) { stacks_.leave(OpenStacks::Leave::task, LinearAddr{at}); }
  std::vector<std::uint64_t> open(AddressSpaceId space, std::uint64_t top) const {
    std::vector<std::uint64_t> slots;
    for (const OpenCall& call : stacks_.open(space, LinearAddr{top}).calls) {
      slots.push_back(call.slot.value);
    }
    return slots;
  }
  OpenStacks stacks_;
};
using Slots = std::vector<std::uint64_t>;

TEST_F(OpenStacksTest, AReturnEndsWhatLiesBelowItsSlot) {
  for (const std::uint64_t slot : {0x7000, 0x6f00, 0x6e00}) call(kKernel, slot);
  EXPECT_EQ(open(kKernel, 0x6e00), (Slots{0x6e00, 0x6f00, 0x7000}));
  EXPECT_EQ(open(kKernel, 0x6e08), (Slots{0x6f00, 0x7000}));
  stacks_.returned(kKernel, LinearAddr{0x6f00});
  EXPECT_EQ(open(kKernel, 0x6f04), Slots{0x7000});
}

TEST_F(OpenStacksTest, AStackIsFoundAgainByItsUsedPart) {
  call(kKernel, 0x9f00);
  switches(0x9e80);
  stacks_.settle(kKernel, LinearAddr{0x7ff0});  // within the lower one's region, far below its use
  call(kKernel, 0x7f00);
  EXPECT_EQ(open(kKernel, 0x7f00), Slots{0x7f00});
  switches(0x7e00);
  EXPECT_EQ(open(kKernel, 0x9e80), Slots{0x9f00});
  stacks_.returned(kKernel, LinearAddr{0x9f00});
  EXPECT_EQ(open(kKernel, 0x9f04), Slots{});
  switches(0x9f04);
  EXPECT_EQ(open(kKernel, 0x7e00), Slots{0x7f00});
}

TEST_F(OpenStacksTest, ALentStackLeadsToTheOneThatItServes) {
  call(kKernel, 0x9f00);
  lends(0x9e00);
  stacks_.settle(kKernel, LinearAddr{0x20ff0});
  call(kKernel, 0x20fe0);
  EXPECT_EQ(open(kKernel, 0x20fe0), (Slots{0x20fe0, 0x9f00}));
  stacks_.returned(kKernel, LinearAddr{0x20fe0});
  lends(0x20ff0);
  stacks_.settle(kKernel, LinearAddr{0x9e00});
  EXPECT_EQ(open(kKernel, 0x9e00), Slots{0x9f00});
}

TEST_F(OpenStacksTest, AHandlerLeadsToTheProgramAndLeavesNothing) {
  call(kProgram, 0x5000);
  stacks_.enter(LinearAddr{0x4f00}, {7, 0});
  stacks_.begin(LinearAddr{0x9fec});
  call(kKernel, 0x9fe0);
  EXPECT_EQ(open(kKernel, 0x9fe0), (Slots{0x9fe0, 0x5000}));
  EXPECT_EQ(stacks_.open(kKernel, LinearAddr{0x9fe0}).entries, (std::vector<Position>{{7, 0}}));
  stacks_.resume(kProgram, LinearAddr{0x4f00});
  EXPECT_EQ(open(kProgram, 0x4f00), Slots{0x5000});
  // Two programs have the same addresses.
  EXPECT_EQ(open(0x2000, 0x4f00), Slots{});
}

}  // namespace
}  // namespace citcat
