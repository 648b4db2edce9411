// Instructions of which the recorder is told later, block by block, are shown as those of which it
// is told one by one, and accesses of which nothing is seen as those that are looked at, whether
// the recorder is told before them of what began or later.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
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
      insn.waits = !insn.first_in_block;
      at += insn.size;
    }
    complete_block(std::span(insns_).first(kInsns / 2));
    complete_block(std::span(insns_).subspan(kInsns / 2));
    ASSERT_TRUE(memory_.snapshot());
  }

  enum class Told { one_by_one, later, together, behind_accesses };

  void start(Recorder& recorder, const Insn& insn, Told how) {
    const bool together = how >= Told::together;
    if (together && insn.first_in_block && recorder.start_plainly(insn, false))
      return recorder.forget_quick_accesses();
    if (how != Told::one_by_one && !insn.first_in_block) return recorder.follow(insn);
    recorder.settle();
    recorder.start(insn);
  }

  /// Four bytes that the instruction reads, or has written.
  void access(Recorder& recorder, const Insn& insn, bool store, std::uint32_t at, Told how) {
    const std::span<const std::uint8_t> bytes(ram_ + at, 4);
    recorder.settle();
    const bool unseen = how >= Told::together && (store ? recorder.store_unseen(insn, at, at, bytes)
                                                        : recorder.load_unseen(insn, at, at, 4));
    unseen_ += unseen;
    if (!unseen) recorder.access(insn, store, at, at, false, bytes);
  }

  void follow(Recorder& recorder, unsigned first, unsigned last) {
    if (!recorder.follow_plainly(&insns_[first], &insns_[last]))
      recorder.follow_all(&insns_[first], &insns_[last]);
  }

  /// The same by a way for which the emulator is asked nothing. The recorder has been told of what
  /// is before `next`. False, with nothing done but that it may be told of the rest, where there is
  /// no such way.
  bool access_quickly(Recorder& recorder, unsigned& next, unsigned n, bool store,
                      std::uint32_t at) {
    const TaggedInsn insn(insns_[n]);
    if (GetParam() != CacheModel::pentium) return false;
    const HeldPage* const page = recorder.quick_page(insn, store, at, 4, next > n);
    if (page == nullptr) return false;
    quick_ += next <= n;
    if (recorder.access_quickly(insn, *page, store, at, 4)) return true;
    if (next <= n) follow(recorder, next, n);
    next = n + 1;
    recorder.settle();
    return recorder.fill_quickly(insn, *page, store, at, 4);
  }

  /// Both blocks three times, with a load behind each fifth instruction, a store behind others, one
  /// of them over what was executed before it, and something of a device in between.
  std::vector<std::array<std::uint64_t, 3>> recorded(Told how) {
    unseen_ = quick_ = 0;
    Recorder recorder(memory_, *sink_, log_, registers_, GetParam());
    registers_.state_.ip = insns_[0].linear;
    recorder.begin(insns_[0], 0);
    for (unsigned round = 0; round < 3; ++round) {
      unsigned next = 0;  // that the recorder has not been told of
      for (unsigned n = 0; n < kInsns; ++n) {
        const Insn& insn = insns_[n];
        const bool load = n % 5 == 4, store = n % 7 == 5;
        if (insn.first_in_block) registers_.state_.ip = insn.linear;
        // Those that wait are told of together where something is accessed, or the block ends.
        const bool last = n + 1 == kInsns || insns_[n + 1].first_in_block;
        if (how >= Told::together && !insn.first_in_block && !load && !store && !last) continue;
        const std::uint32_t to =
            n == kOverCode ? static_cast<std::uint32_t>(insns_[n - 1].linear) : kData + 4 * n;
        const auto before = std::span(ram_ + to, 4);
        std::array<std::uint8_t, 4> stored{};
        std::copy(before.begin(), before.end(), stored.begin());
        stored[0] ^= 0x10;
        if (how == Told::behind_accesses && !insn.first_in_block && load != store && !last &&
            n != kOverCode) {
          if (store) std::copy(stored.begin(), stored.end(), before.begin());
          if (access_quickly(recorder, next, n, store, load ? kData + 8 * n : to)) continue;
        }
        if (next > n && n != 0 && !insn.first_in_block) {
          // It has been told of this one by then.
        } else if (how < Told::together || insn.first_in_block) {
          start(recorder, insn, how);
          if (store) std::copy(stored.begin(), stored.end(), before.begin());
        } else {
          if (store) std::copy(stored.begin(), stored.end(), before.begin());
          const bool out = store && recorder.take_out(to, 4, insns_[next], insn);
          follow(recorder, next, n);
          if (out) recorder.put_back(to, stored);
        }
        next = n + 1;
        if (n == kOverCode) insns_[n - 1].bytes[0] ^= 0x10;
        if (load) access(recorder, insn, false, kData + 8 * n, how);
        if (store) access(recorder, insn, true, to, how);
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

  static constexpr unsigned kInsns = 40, kOverCode = 12;
  unsigned unseen_ = 0, quick_ = 0;
  std::array<Insn, kInsns> insns_;
};

TEST_P(FollowingTest, ShowsWhatOneByOneShows) {
  const auto at_first = std::vector(ram_, ram_ + kRam);
  const auto bytes_at_first = insns_;
  const auto one_by_one = recorded(Told::one_by_one);
  for (const Told how : {Told::later, Told::together, Told::behind_accesses}) {
    std::copy(at_first.begin(), at_first.end(), ram_);
    insns_ = bytes_at_first;
    ASSERT_TRUE(memory_.snapshot());
    EXPECT_EQ(recorded(how), one_by_one);
  }
  if (GetParam() >= CacheModel::write_back) {
    EXPECT_GT(unseen_, 0u);
  }
  if (GetParam() == CacheModel::pentium) {
    EXPECT_GT(quick_, 0u);
  }
  EXPECT_GT(one_by_one.size(), std::size_t{kInsns});
}

INSTANTIATE_TEST_SUITE_P(Caches, FollowingTest,
                         ::testing::Values(CacheModel::none, CacheModel::i486,
                                           CacheModel::write_back, CacheModel::pentium));

}  // namespace
}  // namespace citcat::monitor
