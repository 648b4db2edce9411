// Code that runs on behind the end of its segment is refused there, and does not go on at its
// beginning (Intel SDM vol. 3, 5.3).

#include <gtest/gtest.h>

#include "events/machine/cpu_traits.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"

namespace citcat {
namespace {

class SegmentEnd : public testing::TestWithParam<ExecutionPath> {
 protected:
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  Recording recording_;
};

TEST_P(SegmentEnd, CodeBehindItIsRefused) {
  CpuState& s = recording_.initial;
  s.model = CpuModel::p6;
  s.ram_bytes = 0x30000;
  set_register(s, "cs", 0x1000);
  set_register(s, "ip", 0xfffc);
  set_register(s, "ss", 0x2000);
  set_register(s, "sp", 0x100);
  put(0x10000, {0x46, 0x46, 0xeb, 0xfe});  // inc si; inc si; jmp $: where it must not go on
  put(0x1fffc, {0x90, 0x40, 0x41, 0x42});  // nop; inc ax; inc cx; inc dx
  put(13 * 4, {0x00, 0x05, 0x00, 0x00});   // its vector leads to 0000:0500
  put(0x500, {0x43, 0xeb, 0xfe});          // inc bx; jmp $
  ReplayOptions options;
  options.to = 8;
  options.path = GetParam();
  Replayer replayer(recording_, nullptr, options);
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.exceptions, 1u);
  const CpuState after = replayer.machine().save();
  EXPECT_EQ(after.gpr[kEdx] & 0xffff, 1u);
  EXPECT_EQ(after.gpr[kEbx] & 0xffff, 1u);
  EXPECT_EQ(after.gpr[kEsi] & 0xffff, 0u);
}

INSTANTIATE_TEST_SUITE_P(, SegmentEnd, both_paths(), path_name);

}  // namespace
}  // namespace citcat
