// Where an SMI saves the processor's state: at SMBASE as it is known, and nowhere where it is not.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "replay/session/replayer.h"
#include "unit/replay/machine/both_paths.h"

namespace citcat {
namespace {

constexpr std::uint8_t kAmd64 = 0x64, kP6 = 0;

class FirstSave final : public Observer {
 public:
  void write(PhysAddr a, std::span<const std::uint8_t>, AccessKind, Position now) override {
    if (std::find(instructions.begin(), instructions.end(), now.instruction) !=
        instructions.end()) {
      return;
    }
    instructions.push_back(now.instruction);
    addresses.push_back(a.low32());
  }
  std::vector<std::uint64_t> instructions;
  std::vector<std::uint32_t> addresses;  ///< the first store of each instruction that has any
};

using Case = std::tuple<CpuModel, std::uint8_t, ExecutionPath>;

/// At 1000:0000 NOPs and HLT. SMIs come after one instruction and after five; the handlers at
/// 38000 and A8000 are NOP and RSM, and the first NOP's place may hold a MOV that moves SMBASE.
class SavedState : public testing::TestWithParam<Case> {
 protected:
  SavedState() {
    CpuState& s = recording_.initial;
    s.model = std::get<0>(GetParam());
    set_register(s, "cs", 0x1000);
    put(0x10000, {0x90, 0x90, 0x90, 0x90, 0xf4});
    put(0x38000, {0x90, 0x0f, 0xaa});
    put(0xa8000, {0x90, 0x0f, 0xaa});
    add_smi(1);
    add_smi(5);  // one of NOP, RSM, two NOPs behind the first
    recording_.instructions = 9;
  }
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) recording_.image.set(PhysAddr{at++}, static_cast<std::uint8_t>(b));
  }
  void add_smi(std::uint64_t at) {
    Interrupt smi;
    smi.kind = Interrupt::Kind::smi;
    smi.vector = std::get<1>(GetParam());
    smi.position_known = true;
    smi.position = {at, 0};
    recording_.interrupts.push_back(smi);
  }
  /// In place of the handler's NOP: MOV DWORD CS:[saved SMBASE],A0000. Its offset in the saved
  /// state is 7EF8 or 7F00 from SMBASE + 8000h (SDM vol. 3, table 34-1; AMD64 manual, table 10-1).
  void move_smbase() {
    const int low = std::get<1>(GetParam()) == kAmd64 ? 0x00 : 0xf8;
    const int high = std::get<1>(GetParam()) == kAmd64 ? 0xff : 0xfe;
    put(0x38000, {0x66, 0x2e, 0xc7, 0x06, low, high, 0x00, 0x00, 0x0a, 0x00, 0x0f, 0xaa});
  }
  ReplayOptions options() const {
    ReplayOptions options;
    options.path = std::get<2>(GetParam());
    return options;
  }
  void forget() { recording_.initial.unknown = {"smbase"}; }

  Recording recording_;
  FirstSave saves_;
};

TEST_P(SavedState, IsWhereTheInitialStateSays) {
  for (const std::uint32_t base : {0x30000u, 0xa0000u}) {
    recording_.initial.smbase = base;
    saves_ = {};
    Replayer replayer(recording_, &saves_, options());
    EXPECT_EQ(replayer.run().end, ReplayReport::End::complete);
    EXPECT_EQ(saves_.addresses, (std::vector<std::uint32_t>{base + 0xfffc, base + 0xfffc}));
  }
}

TEST_P(SavedState, IsNowhereWhereNobodyKnowsIt) {
  forget();
  Replayer replayer(recording_, &saves_, options());
  const ReplayReport report = replayer.run();
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_NE(report.divergence->reason.find("SMBASE is not known"), std::string::npos);
  EXPECT_EQ(report.divergence->position, (Position{1, 0}));
  EXPECT_TRUE(saves_.addresses.empty());
}

TEST_P(SavedState, NeedsNoPlaceWhereThereIsNoSmi) {
  forget();
  recording_.interrupts.clear();
  recording_.instructions = 5;
  Replayer replayer(recording_, nullptr, options());
  EXPECT_EQ(replayer.run().end, ReplayReport::End::complete);
}

TEST_P(SavedState, IsNotLookedForByAnRsmEither) {
  forget();
  recording_.initial.in_smm = true;
  recording_.interrupts.clear();
  put(0x10000, {0x0f, 0xaa});
  Replayer replayer(recording_, nullptr, options());
  const ReplayReport report = replayer.run();
  ASSERT_EQ(report.end, ReplayReport::End::diverged);
  EXPECT_NE(report.divergence->reason.find("SMBASE is not known"), std::string::npos);
}

TEST_P(SavedState, MovesToTheSmbaseThatRsmLoads) {
  move_smbase();
  Replayer replayer(recording_, &saves_, options());
  const ReplayReport report = replayer.run();
  EXPECT_EQ(report.end, ReplayReport::End::complete);
  EXPECT_EQ(saves_.addresses, (std::vector<std::uint32_t>{0x3fffc, 0xafffc}));
  EXPECT_EQ(replayer.machine().save().smbase, 0xa0000u);
}

TEST_P(SavedState, HasItsPlaceInCheckpoints) {
  move_smbase();
  ReplayOptions to_four = options();
  to_four.to = 4;
  Replayer first(recording_, nullptr, to_four);
  first.run();
  const Replayer::Checkpoint checkpoint = first.checkpoint();
  Replayer second(recording_, &saves_, options());
  second.restore(checkpoint);
  const ReplayReport report = second.run();
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
  EXPECT_EQ(saves_.addresses, (std::vector<std::uint32_t>{0xafffc}));
}

TEST_P(SavedState, HasNoPlaceAfterACheckpointEither) {
  forget();
  recording_.interrupts.erase(recording_.interrupts.begin());
  recording_.interrupts[0].position = {3, 0};
  ReplayOptions to_two = options();
  to_two.to = 2;
  Replayer first(recording_, nullptr, to_two);
  first.run();
  const Replayer::Checkpoint checkpoint = first.checkpoint();
  Replayer second(recording_, nullptr, options());
  second.restore(checkpoint);
  const ReplayReport report = second.run();
  ASSERT_TRUE(report.divergence);
  EXPECT_NE(report.divergence->reason.find("SMBASE is not known"), std::string::npos);
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(cpu_model_name(std::get<0>(info.param))) +
         (std::get<1>(info.param) == kAmd64 ? "Amd64Map" : "P6Map") +
         (std::get<2>(info.param) == ExecutionPath::blocks ? "ByBlocks" : "ByInstructions");
}

INSTANTIATE_TEST_SUITE_P(, SavedState,
                         testing::Combine(testing::Values(CpuModel::i386, CpuModel::i486,
                                                          CpuModel::pentium, CpuModel::p6),
                                          testing::Values(kP6, kAmd64), both_paths()),
                         case_name);

}  // namespace
}  // namespace citcat
