// Instructions of which the recorder is told later, block by block, are shown as those of which it
// is told one by one.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tests/monitor/recorder_fixture.h"

namespace citcat::monitor {
namespace {

class FollowingTest : public RecorderFixture {
 protected:
  static constexpr std::uint32_t kCode = 0x1fe0, kData = 0x203f8;

  /// Two blocks of instructions of all lengths, which cross lines and a page.
  void SetUp() override {
    RecorderFixture::SetUp();
    std::uint32_t at = kCode;
    for (unsigned n = 0; n < kInsns; ++n) {
      static constexpr std::array<std::uint8_t, 4> kMove{0x8b, 0x03, 0x90, 0x90};
      Insn& insn = insns_[n];
      insn.linear = insn.physical = at;
      insn.size = static_cast<std::uint8_t>(1 + n * 7 % 11);
      insn.first_in_block = n == 0 || n == kInsns / 2;
      for (unsigned k = 0; k < insn.size; ++k) ram_[at + k] = insn.bytes[k] = kMove[k % 2 + 2];
      insn.what = classify({insn.bytes.data(), insn.size}, CodeSize::bits32);
      complete(insn, insn.first_in_block ? nullptr : &insn - 1, GetParam());
      at += insn.size;
    }
    ASSERT_TRUE(memory_.snapshot());
  }

  /// Both blocks three times, with a load behind each fifth instruction and something of a device
  /// in between.
  std::vector<std::array<std::uint64_t, 3>> recorded(bool later) {
    Recorder recorder(memory_, *sink_, log_, registers_, GetParam());
    registers_.state_.ip = insns_[0].linear;
    recorder.begin(insns_[0], 0);
    for (unsigned round = 0; round < 3; ++round) {
      for (unsigned n = 0; n < kInsns; ++n) {
        const Insn& insn = insns_[n];
        if (insn.first_in_block) registers_.state_.ip = insn.linear;
        if (later && !insn.first_in_block)
          recorder.follow(insn);
        else
          recorder.start(insn);
        if (n % 5 == 4)
          recorder.access(insn, false, kData + 8 * n, kData + 8 * n, false,
                          {ram_ + kData + 8 * n, 4});
      }
      change(insns_[3 + round]);  // by a device: seen where that line is fetched the next time
    }
    for (unsigned round = 0; round < 3; ++round) change(insns_[3 + round]);
    std::vector<std::array<std::uint64_t, 3>> out;
    out.push_back({recorder.instructions(), 0, 0});
    for (const Seen& record : seen())
      out.push_back({static_cast<std::uint64_t>(record.type), record.address,
                     record.instructions << 8 | static_cast<unsigned>(record.size)});
    return out;
  }

  void change(Insn& insn) {
    ram_[insn.linear] ^= 0x10;
    insn.bytes[0] ^= 0x10;
  }

  static constexpr unsigned kInsns = 40;
  std::array<Insn, kInsns> insns_;
};

TEST_P(FollowingTest, ShowsWhatOneByOneShows) {
  const auto one_by_one = recorded(false);
  ASSERT_TRUE(memory_.snapshot());
  EXPECT_EQ(recorded(true), one_by_one);
  EXPECT_GT(one_by_one.size(), std::size_t{kInsns});
}

INSTANTIATE_TEST_SUITE_P(Caches, FollowingTest,
                         ::testing::Values(CacheModel::none, CacheModel::i486,
                                           CacheModel::write_back, CacheModel::pentium));

}  // namespace
}  // namespace citcat::monitor
