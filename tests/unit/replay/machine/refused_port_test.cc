// A port access that no evidence shows, or that it shows otherwise: the replay ends in front of its
// instruction, whatever the engine has made of it by then, by instructions and by blocks.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "unit/replay/machine/both_paths.h"
#include "unit/replay/machine/paged_guest.h"

namespace citcat {
namespace {

using test::PagedGuest;

/// Takes blocks, and keeps what it is told.
class Told final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::blocks}; }
  void instruction(const ExecutedInstruction& e, Position) override {
    linear.push_back(e.linear.low32());
  }

  std::vector<std::uint32_t> linear;
};

/// Denies one of the port accesses, and has nothing to say of anything else.
class Denying final : public BlockJudge {
 public:
  Denying(unsigned allowed, bool ends) : allowed_(allowed), ends_(ends) {}
  void judges(Machine& machine) override { machine_ = &machine; }
  bool judges_blocks() const override { return true; }
  Interest interest() const override { return {}; }
  Position expected() override { return {~std::uint64_t{0}, 0}; }
  bool expects_stores() const override { return false; }
  bool wants_account() const override { return false; }
  void io_read(std::uint16_t, std::uint32_t, std::uint32_t, Position now) override { access(now); }
  void io_write(std::uint16_t, std::uint32_t, std::uint32_t, Position now) override { access(now); }

 private:
  void access(Position now) {
    if (allowed_-- != 0) return;
    if (ends_) return machine_->control().stop_before(now);
    throw ReplayStopped{now, "another port", 7, "this", "that"};
  }
  unsigned allowed_;
  bool ends_;
  Machine* machine_ = nullptr;
};

class RefusedPort : public testing::TestWithParam<ExecutionPath> {
 protected:
  /// At 12000: nop; the instruction of `bytes`; nop; nop; jmp to itself. EDI is 20000, ECX 3.
  static PagedGuest guest_with(std::initializer_list<int> bytes) {
    PagedGuest guest;
    guest.recording.initial.gpr = {0x11223344, 3, 0x61, 0, PagedGuest::kStack, 0, 0x20000, 0x20000};
    guest.put_word(0x20000, 0x99887766);
    guest.add({0x90});
    guest.add(bytes);
    guest.add({0x90, 0x90, 0xeb, 0xfe});
    guest.recording.instructions = 1000;
    return guest;
  }
  static void evidence(PagedGuest& guest, std::uint32_t reads, std::uint32_t size) {
    for (std::uint32_t i = 0; i < reads; ++i) {
      IoRead read;
      read.port = 0x61;
      read.size = static_cast<std::uint8_t>(size);
      read.value = 0xa0 + i;
      guest.recording.io_reads.push_back(read);
    }
  }

  struct Found {
    ReplayReport report;
    CpuState cpu;
    std::uint32_t data = 0;  ///< at 20000
    std::vector<std::uint32_t> told;
  };
  static Found run(const PagedGuest& guest, unsigned allowed = ~0u, bool ends = false) {
    Told told;
    Denying denying(allowed, ends);
    Listeners listeners;
    listeners.add(told);
    listeners.add(denying);
    ReplayOptions options;
    options.path = GetParam();
    Replayer replayer(guest.recording, listeners, options);
    Found found;
    found.report = replayer.run();
    found.cpu = replayer.machine().save();
    std::memcpy(&found.data, replayer.machine().memory().host(PhysAddr{0x20000}), 4);
    found.told = told.linear;
    return found;
  }
  /// Position 1, in front of the instruction at 12001; nothing of it has been done.
  static void expect_in_front(const Found& found, const PagedGuest& guest) {
    EXPECT_EQ(found.report.instructions, 1u);
    EXPECT_EQ(found.told, std::vector<std::uint32_t>{0x12000});
    EXPECT_EQ(found.cpu.eip, 0x12001u);
    EXPECT_EQ(found.cpu.gpr, guest.recording.initial.gpr);
    EXPECT_EQ(found.data, 0x99887766u);
  }
  static void expect_named(const Found& found) {
    ASSERT_TRUE(found.report.divergence);
    EXPECT_EQ(place_text(*found.report.divergence), "instruction 1 at 00012001");
  }
};

TEST_P(RefusedPort, EndsTheReplayInFrontOfAReadWithoutEvidence) {
  const std::initializer_list<int> kInstructions[] = {
      {0xec},        // in al,dx
      {0xed},        // in eax,dx
      {0xe4, 0x61},  // in al,61h
      {0x6c},        // insb
      {0x6d},        // insd
      {0xf3, 0x6c},  // rep insb
  };
  for (const auto& bytes : kInstructions) {
    const PagedGuest guest = guest_with(bytes);
    const Found found = run(guest);
    expect_in_front(found, guest);
    expect_named(found);
  }
}

TEST_P(RefusedPort, EndsTheReplayInFrontOfAReadOfAnotherSize) {
  PagedGuest guest = guest_with({0xec});  // in al,dx
  evidence(guest, 1, 2);
  const Found found = run(guest);
  expect_in_front(found, guest);
  expect_named(found);
}

TEST_P(RefusedPort, EndsTheReplayInFrontOfAWriteThatIsDenied) {
  for (const std::initializer_list<int> bytes :
       {std::initializer_list<int>{0xee}, {0x6e}, {0xf3, 0x6e}}) {  // out dx,al; outsb; rep outsb
    const PagedGuest guest = guest_with(bytes);
    const Found found = run(guest, 0);
    expect_in_front(found, guest);
    expect_named(found);
    const Found ended = run(guest, 0, true);
    expect_in_front(ended, guest);
    EXPECT_EQ(ended.report.end, ReplayReport::End::complete);
  }
}

TEST_P(RefusedPort, EndsTheReplayInFrontOfOneIteration) {
  PagedGuest guest = guest_with({0xf3, 0x6c});  // rep insb
  evidence(guest, 2, 1);
  const Found found = run(guest);
  ASSERT_TRUE(found.report.divergence);
  EXPECT_EQ(place_text(*found.report.divergence), "instruction 1+2 at 00012001");
  EXPECT_EQ(found.report.instructions, 1u);
  EXPECT_EQ(found.cpu.eip, 0x12001u);
  EXPECT_EQ(found.cpu.gpr[kEcx], 1u);
  EXPECT_EQ(found.cpu.gpr[kEdi], 0x20002u);
  EXPECT_EQ(found.data, 0x9988a1a0u);
  EXPECT_EQ(found.told, (std::vector<std::uint32_t>{0x12000, 0x12001, 0x12001}));
}

/// Where blocks that were executed often follow each other.
TEST_P(RefusedPort, EndsTheReplayInFrontOfTheLastInstructionOfABlock) {
  constexpr std::uint32_t kReads = 100, kBegin = 0x12ffe;
  PagedGuest guest = guest_with({0xec});
  guest.recording.initial.eip = kBegin;
  guest.put(kBegin, {0x90, 0xec});   // nop; in al,dx
  guest.put(0x13000, {0xeb, 0xfc});  // jmp kBegin
  evidence(guest, kReads, 1);
  const Found found = run(guest);
  EXPECT_EQ(found.report.instructions, 3 * kReads + 1);
  EXPECT_EQ(found.told.size(), 3 * kReads + 1);
  EXPECT_EQ(found.cpu.eip, kBegin + 1);
}

INSTANTIATE_TEST_SUITE_P(, RefusedPort, both_paths(), path_name);

}  // namespace
}  // namespace citcat
