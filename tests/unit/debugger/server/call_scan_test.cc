// Open calls where a kernel changes stacks.

#include "debugger/server/call_scan.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "unit/replay/machine/long_mode_guest.h"

namespace citcat {
namespace {

/// Scans the calls of a machine that is there only once it has this observer.
struct Scanned final : Observer {
  Interest interest() const override { return {.code = Detail::blocks}; }
  void watch(const Machine& machine) override { scan.emplace(machine); }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override {
    scan->ran(blocks, first, count);
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    scan->instruction(e, now);
  }
  std::optional<CallScan> scan;
};

class CallScanTest : public LongModeGuest {
 protected:
  std::vector<std::uint64_t> open_after(std::uint64_t instructions) {
    Scanned scanned;
    ReplayOptions options;
    options.to = instructions;
    Replayer replayer(recording_, &scanned, options);
    EXPECT_EQ(replayer.run().instructions, instructions);
    std::vector<std::uint64_t> callers;
    for (const OpenCall& call : scanned.scan->open().calls) callers.push_back(call.call.value);
    return callers;
  }
};

/// A task calls a procedure, which goes to another task and back. The pushes and pops that show
/// which stack is in use are in other blocks than the loads of the stack pointer, which goes far
/// down once the first task is back.
TEST_F(CallScanTest, TheNextPushOrPopShowsWhichTasksStackIsInUse) {
  put_quad(kData + 8, kStack - 0x4000);
  put(kCode, {0xe8, 0x0b, 0, 0, 0});                                     // call +10h
  put(kCode + 0x10, {0x53, 0x48, 0x89, 0x24, 0x25, 0x00, 0x00, 0x02, 0,  // push rbx; mov [], rsp
                     0x48, 0x8b, 0x24, 0x25, 0x08, 0x00, 0x02, 0, 0xeb, 0});  // mov rsp, []; jmp
  put(kCode + 0x23, {0x50, 0x58, 0xeb, 0});                                   // push; pop; jmp
  put(kCode + 0x27, {0x48, 0x8b, 0x24, 0x25, 0x00, 0x00, 0x02, 0, 0xeb, 0});  // mov rsp, []; jmp
  // pop rbx; sub rsp, 1000h; jmp
  put(kCode + 0x31, {0x5b, 0x48, 0x81, 0xec, 0x00, 0x10, 0, 0, 0xeb, 0, 0x90});
  constexpr std::uint64_t kInOther = 7, kBack = 13;
  const std::vector<std::uint64_t> nobody, first = {kCode};
  EXPECT_EQ(open_after(2), first);
  EXPECT_EQ(open_after(kInOther), nobody);
  EXPECT_EQ(open_after(kBack), first);
}

}  // namespace
}  // namespace citcat
