// Images of RFLAGS in a comparison: what a processor of 64 bits leaves of flags that no manual
// tells.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "capture/import/import.h"
#include "replay/verify/verifier.h"
#include "unit/replay/machine/long_mode_guest.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

constexpr std::uint32_t kOverflow = 0x800;

/// SHL EAX, 3 leaves OF to the processor; what follows stores an image of it.
class WideFlagImages : public LongModeGuest {
 protected:
  void SetUp() override {
    LongModeGuest::SetUp();
    // Walks have nothing to mark.
    put_quad(kTables, kTables + 0x1027);
    put_quad(kTables + 0x1000, kTables + 0x2027);
    put_quad(kTables + 0x2000, 0xe7);
    put(kCode, {0xc1, 0xe0, 0x03});
  }
  /// The bus shows eight bytes, as two transfers of four.
  void stored(std::uint32_t address, std::uint64_t value) {
    for (unsigned half = 0; half < 2; ++half, address += 4, value >>= 32) {
      BusTransaction& t = bus_.evidence.emplace_back();
      t.index = bus_.evidence.size() - 1;
      t.op = BusOp::data_write;
      t.address = PhysAddr{address};
      t.size = 4;
      for (unsigned i = 0; i < 4; ++i) t.data[i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }
  /// Why the replay of so many instructions is not what the bus shows; empty where it is.
  std::string disagreement(std::uint64_t instructions) {
    Verifier verifier(recording_, bus_.read_evidence(), {});
    ReplayOptions options;
    options.to = instructions;
    Replayer replayer(recording_, &verifier, options);
    const ReplayReport report = verifier.finish(replayer.run());
    adopted_ = verifier.adoptions().size();
    return report.divergence ? report.divergence->reason : "";
  }
  std::uint64_t flags_after_shift() {
    run(1);
    return after("rflags");
  }

  ImportedRecording bus_;  ///< its evidence alone
  std::size_t adopted_ = 0;
};

TEST_F(WideFlagImages, PushfqMayStoreAnotherUndefinedFlag) {
  put(kCode + 3, {0x9c});  // pushfq
  stored(kStack - 8, flags_after_shift() ^ kOverflow);
  EXPECT_EQ(disagreement(2), "");
  EXPECT_EQ(adopted_, 1u);
}

TEST_F(WideFlagImages, ItsUpperHalfIsDefined) {
  put(kCode + 3, {0x9c});
  stored(kStack - 8, flags_after_shift() | std::uint64_t{kOverflow} << 32);
  EXPECT_NE(disagreement(2), "");
}

/// In 32 bits there are no images of eight bytes, whatever looks like one.
TEST_F(WideFlagImages, OutsideLongModeEightBytesAreNone) {
  constexpr std::uint32_t kTarget = 0x20000;
  test::PagedGuest guest;
  guest.add({0xc1, 0xe0, 0x03});  // shl eax, 3
  guest.add({0x0f, 0xc7, 0x0f});  // cmpxchg8b [edi]: finds EDX:EAX, both 0, and stores ECX:EBX
  recording_ = std::move(guest.recording);
  recording_.initial.gpr[kEdi] = kTarget;
  run(1);
  recording_.initial.gpr[kEbx] = after_.eflags;
  stored(kTarget, after_.eflags ^ kOverflow);
  EXPECT_NE(disagreement(2), "");
}

/// SYSCALL leaves the image in R11, and clears OF in the register itself.
TEST_F(WideFlagImages, SyscallMayLeaveAnotherUndefinedFlagInR11) {
  recording_.initial.msrs = {
      {0xc0000081, std::uint64_t{8} << 32}, {0xc0000082, kHandler}, {0xc0000084, kOverflow | 0x55}};
  put(kCode + 3, {0x0f, 0x05});
  put(kHandler, {0x41, 0x53});  // push r11
  set_register(recording_.initial, "rax", 0x30000001);
  stored(kStack - 8, flags_after_shift() ^ kOverflow);
  EXPECT_EQ(disagreement(3), "");
  EXPECT_EQ(adopted_, 1u);
}

}  // namespace
}  // namespace citcat
