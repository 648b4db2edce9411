// A repeated string of thousands of millions of iterations: whoever asks for the way through it can
// be told that it is long, at any time.

#include <gtest/gtest.h>

#include <cstdint>

#include "replay/run/replay_timeline.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kPageDirectory = 0x1000, kLowTable = 0x2000, kHighTable = 0x3000,
                        kRead = 0x4000, kRepeatAt = 0x5000, kFirstRead = 0x400000,
                        kIterations = 0xf0000000;
/// What may be gone through between two questions, or before the first.
constexpr std::uint32_t kBetween = 1 << 21;

/// REP LODSB through an address space that leads to one page again and again, then NOP and HLT.
Recording long_repeat() {
  Recording recording;
  for (std::uint32_t at = 0; at < 0x6000; ++at) recording.image.set(PhysAddr{at}, 0);
  const auto put = [&](std::uint32_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) {
      recording.image.set(PhysAddr{at + i}, static_cast<std::uint8_t>(value >> 8 * i));
    }
  };
  for (std::uint32_t i = 0; i < 1024; ++i) {
    put(kPageDirectory + 4 * i, (i == 0 ? kLowTable : kHighTable) | 0x63);
    put(kLowTable + 4 * i, i * kPageSize | 0x63);
    put(kHighTable + 4 * i, kRead | 0x63);
  }
  put(kRepeatAt, 0xf490acf3);
  CpuState& s = recording.initial;
  s.model = CpuModel::p6;
  s.ram_bytes = 0x10000;
  s.cr0 = 0x80000011;
  s.cr3 = kPageDirectory;
  s.eip = kRepeatAt;
  s.eflags = 2;
  s.gpr[kEcx] = kIterations;
  s.gpr[kEsi] = kFirstRead;
  s.segment.fill({0x10, 0, 0xffffffff, 0xc093, false});
  s.segment[kCs] = {8, 0, 0xffffffff, 0xc09b, false};
  recording.instructions = 3;
  return recording;
}

class LongRepeat : public TemporaryFolder {
 protected:
  void SetUp() override {
    RecordingFileWriter(path("r.citcat")).finish(long_repeat());
    file_.emplace(RecordingFile::open(path("r.citcat")));
    timeline_.emplace(*file_, nullptr, TimelineOptions{});
  }
  /// Says so when it is asked for the second time.
  ReplayTimeline::Interrupt second_time() {
    asked_ = 0;
    return [this] { return ++asked_ >= 2; };
  }
  void expect_within(std::uint32_t from) {
    EXPECT_TRUE(timeline_->interrupted());
    EXPECT_EQ(timeline_->position().instruction, 0u);
    EXPECT_GE(timeline_->position().iteration, from);
    EXPECT_LE(timeline_->position().iteration, from + 3 * kBetween);
  }

  std::optional<RecordingFile> file_;
  std::optional<ReplayTimeline> timeline_;
  int asked_ = 0;
};

TEST_F(LongRepeat, WhoeverGoesThereStaysWithinIt) {
  timeline_->seek({2, 0}, second_time());
  expect_within(1);
  EXPECT_FALSE(timeline_->end());
  // From there on and back, as from anywhere.
  const std::uint32_t there = timeline_->position().iteration;
  EXPECT_TRUE(timeline_->step());
  EXPECT_EQ(timeline_->position(), (Position{0, there + 1}));
  timeline_->seek({0, 100}, second_time());
  EXPECT_EQ(timeline_->position(), (Position{0, 100}));
  EXPECT_EQ(timeline_->registers().gpr[kEsi], kFirstRead + 100);
}

TEST_F(LongRepeat, ASearchEndsWithinIt) {
  StopSet stops;
  stops.code.push_back(LinearAddr{kRepeatAt + 2});
  const ReplayTimeline::Stop stop = timeline_->run_to_stop(stops, second_time());
  EXPECT_EQ(stop.why, ReplayTimeline::Stop::Why::interrupted);
  expect_within(1);
  // And goes on where it ended.
  const std::uint32_t there = timeline_->position().iteration;
  timeline_->run_to_stop(stops, second_time());
  expect_within(there);
}

TEST_F(LongRepeat, ASearchBackEndsWithinIt) {
  timeline_->seek({0, kBetween});
  StopSet stops;
  stops.memory.push_back({PhysAddr{kRead}, 1, false, true});
  const ReplayTimeline::Stop stop = timeline_->run_back_to_stop(stops, second_time());
  EXPECT_EQ(stop.why, ReplayTimeline::Stop::Why::interrupted);
  EXPECT_LE(timeline_->position(), (Position{0, kBetween}));
}

TEST_F(LongRepeat, WhatIsToldEndsWithinIt) {
  Observer nobody;
  EXPECT_FALSE(timeline_->tell_on({0, {2, 0}}, nobody, false, second_time()));
  expect_within(1);
  const Moment here = timeline_->moment();
  EXPECT_FALSE(timeline_->tell({}, {0, {2, 0}}, nobody, false, second_time()));
  EXPECT_EQ(timeline_->moment(), here);
}

}  // namespace
}  // namespace citcat::test
