// Breakpoints and watchpoints are met where a replay that is told every access by itself meets
// them, from either side.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "events/position_text.h"
#include "replay/run/replay_timeline.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/replay/run/last_stores.h"
#include "unit/replay/run/state_hash.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kStopsLength = 6'000;

/// Everything that may be looked for, in the order of time, told one by one.
class WatchedAccesses final : public Observer {
 public:
  struct Access {
    Moment at;
    StopHit::Kind kind;
    LinearAddr code;
    PhysAddr address;
    std::uint32_t size = 0;
    bool outside = false, delivered = false, walk = false;
  };
  Interest interest() const override { return Interest::everything(); }
  void watch(const Machine& machine) override { machine_ = &machine; }
  void fetch(PhysAddr, std::uint32_t, Position now) override {
    in_delivery_ = false;
    if (now.iteration == 0) add({at(now), StopHit::Kind::code, next(), {}});
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    if (kind != AccessKind::walk) add({at(now), StopHit::Kind::read, next(), a, size});
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    add({at(now), StopHit::Kind::write, next(), a, static_cast<std::uint32_t>(bytes.size()), false,
         false, kind == AccessKind::walk});
  }
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override {
    add({at(now), StopHit::Kind::write, {}, a, static_cast<std::uint32_t>(bytes.size()), true});
  }
  void delivered(const DeliveredEvent&, Position now) override {
    if (!in_delivery_) before_delivery_ = at(now);
    ++deliveries_;
    in_delivery_ = true;
  }
  const std::vector<Access>& all() const { return all_; }

 private:
  Moment at(Position now) const { return {deliveries_, now}; }
  LinearAddr next() const { return machine_->next_linear(); }
  void add(Access access) {
    access.delivered = in_delivery_;
    if (in_delivery_) access.at = before_delivery_;
    all_.push_back(access);
  }

  const Machine* machine_ = nullptr;
  std::uint64_t deliveries_ = 0;
  bool in_delivery_ = false;
  Moment before_delivery_;
  std::vector<Access> all_;
};

class TimelineStops : public TemporaryFolder {
 protected:
  RecordingFile stored(const Recording& recording) {
    RecordingFileWriter(path("r.citcat")).finish(recording);
    return RecordingFile::open(path("r.citcat"));
  }
  static Recording guest(GuestMode mode) {
    for (std::uint64_t seed = 1;; ++seed) {
      Recording recording = random_guest(mode, seed, kStopsLength, true);
      if (Replayer(recording, nullptr, {}).run().instructions == kStopsLength) return recording;
    }
  }
  static std::vector<WatchedAccesses::Access> accesses_of(const Recording& recording) {
    WatchedAccesses accesses;
    ReplayOptions options;
    options.path = ExecutionPath::instructions;
    Replayer(recording, &accesses, options).run();
    return accesses.all();
  }
  /// In any order: an instruction may be told of its accesses in one that is not theirs.
  static std::vector<std::string> texts(const std::vector<StopHit>& hits) {
    std::vector<std::string> texts;
    for (const StopHit& h : hits) {
      texts.push_back(access_text(h.kind, h.address, h.size, h.outside));
    }
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  static std::string access_text(StopHit::Kind kind, PhysAddr at, std::uint32_t size,
                                 bool outside) {
    return fmt::format("{} {:x} {} {}", static_cast<int>(kind), at.value, size, outside);
  }
  /// What a step between these moments is to meet.
  static void expect_met(const std::vector<StopHit>& hits,
                         const std::vector<WatchedAccesses::Access>& all, const StopSet& stops,
                         Moment from, Moment to) {
    std::vector<std::string> expected;
    for (const WatchedAccesses::Access& a : all) {
      if (a.kind == StopHit::Kind::code) continue;
      if (a.outside ? a.at <= from || a.at > to : a.at < from || a.at >= to) continue;
      const bool watched =
          std::any_of(stops.memory.begin(), stops.memory.end(), [&](const MemoryWatch& w) {
            const bool wanted = a.kind == StopHit::Kind::write ? w.writes : w.reads;
            return wanted && overlap(a.address, a.size, w.address, w.size);
          });
      if (watched) expected.push_back(access_text(a.kind, a.address, a.size, a.outside));
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(texts(hits), expected)
        << position_text(from.position) << " to " << position_text(to.position);
  }
  static TimelineOptions options() {
    TimelineOptions options;
    options.every = 1000;
    return options;
  }
};

/// Whether what is looked for is met at all: a code address, or a byte.
bool meets(const WatchedAccesses::Access& access, const WatchedAccesses::Access& wanted) {
  if (access.kind != wanted.kind) return false;
  if (wanted.kind == StopHit::Kind::code) return access.code == wanted.code;
  return overlap(access.address, access.size, wanted.address, 1);
}

StopSet stops_for(const WatchedAccesses::Access& wanted) {
  StopSet stops;
  if (wanted.kind == StopHit::Kind::code) {
    stops.code.push_back(wanted.code);
  } else {
    stops.memory.push_back({wanted.address, 1, wanted.kind == StopHit::Kind::read,
                            wanted.kind == StopHit::Kind::write});
  }
  return stops;
}

TEST_F(TimelineStops, AreMetWhereEachAccessIsToldByItself) {
  for (const GuestMode mode :
       {GuestMode::kernel, GuestMode::user, GuestMode::virtual8086, GuestMode::real}) {
    const Recording recording = guest(mode);
    const std::vector<WatchedAccesses::Access> all = accesses_of(recording);
    const RecordingFile file = stored(recording);
    ReplayTimeline timeline(file, nullptr, options());
    std::mt19937_64 random(11);
    int met = 0;
    for (int i = 0; i < 60; ++i) {
      const WatchedAccesses::Access& wanted = all[random() % all.size()];
      // What a delivery touches, and other masters, have places of their own: below.
      if (wanted.delivered || wanted.outside) continue;
      const StopSet stops = stops_for(wanted);
      timeline.seek({random() % kStopsLength, 0});
      const Moment from = timeline.moment();
      SCOPED_TRACE(testing::Message() << guest_mode_name(mode) << " try " << i << " kind "
                                      << static_cast<int>(wanted.kind));
      const auto last = std::find_if(all.rbegin(), all.rend(), [&](const auto& a) {
        return meets(a, wanted) && (a.outside ? a.at <= from : a.at < from);
      });
      const ReplayTimeline::Stop back = timeline.run_back_to_stop(stops);
      ASSERT_EQ(back.hit.has_value(), last != all.rend());
      if (back.hit && !last->delivered && !last->outside) {
        ++met;
        EXPECT_EQ(timeline.moment(), last->at);
      }
      timeline.seek(from.position);
      const auto first = std::find_if(all.begin(), all.end(), [&](const auto& a) {
        if (!meets(a, wanted)) return false;
        return a.kind == StopHit::Kind::code || a.outside ? a.at > from : a.at >= from;
      });
      const ReplayTimeline::Stop on = timeline.run_to_stop(stops);
      ASSERT_EQ(on.hit.has_value(), first != all.end());
      if (!on.hit || first->delivered || first->outside) continue;
      ++met;
      if (first->kind == StopHit::Kind::code) {
        EXPECT_EQ(timeline.moment(), first->at);
      } else {
        EXPECT_GT(timeline.moment(), first->at);
        timeline.step_back();
        EXPECT_EQ(timeline.moment(), first->at);
      }
    }
    EXPECT_GT(met, 20) << guest_mode_name(mode);
  }
}

/// Steps look for what is watched as longer moves do: every access on the way, and no other.
TEST_F(TimelineStops, AStepMeetsWhatEachAccessIsToldByItself) {
  for (const GuestMode mode : kGuestModes) {
    SCOPED_TRACE(guest_mode_name(mode));
    const Recording recording = guest(mode);
    const std::vector<WatchedAccesses::Access> all = accesses_of(recording);
    const RecordingFile file = stored(recording);
    ReplayTimeline timeline(file, nullptr, options());
    std::mt19937_64 random(3);
    int met = 0;
    for (int i = 0; i < 6; ++i) {
      // What is accessed hereabouts, so that a good part of the steps meets something.
      timeline.seek({random() % (kStopsLength - 200), 0});
      StopSet stops;
      for (const WatchedAccesses::Access& access : all) {
        const std::uint64_t at = access.at.position.instruction;
        const bool near =
            at >= timeline.position().instruction && at < timeline.position().instruction + 40;
        if (access.kind == StopHit::Kind::code || !near || random() % 3 == 0) continue;
        stops.memory.push_back({access.address, 1, random() % 2 == 0, random() % 2 == 0});
      }
      std::vector<std::vector<StopHit>> passed;
      for (int step = 0; step < 40; ++step) {
        const Moment from = timeline.moment();
        std::vector<StopHit> hits;
        if (!timeline.step(stops, hits)) break;
        expect_met(hits, all, stops, from, timeline.moment());
        met += hits.empty() ? 0 : 1;
        passed.push_back(std::move(hits));
      }
      for (; !passed.empty(); passed.pop_back()) {
        std::vector<StopHit> hits;
        ASSERT_TRUE(timeline.step_back(stops, hits));
        EXPECT_EQ(texts(hits), texts(passed.back())) << "back";
      }
    }
    EXPECT_GT(met, 20);
  }
}

/// Data, frames of deliveries, accessed and dirty bits, other masters' writes, strings; of code
/// that is stored to as well. A stretch between checkpoints may end behind any store, in the midst
/// of what would run as a block.
TEST_F(TimelineStops, TheLastStoreIsTheSameWithABreakpointBeside) {
  int outside = 0, walks = 0, delivered = 0;
  for (const GuestMode mode : {GuestMode::kernel, GuestMode::user, GuestMode::virtual8086,
                               GuestMode::real, GuestMode::flat}) {
    SCOPED_TRACE(guest_mode_name(mode));
    const Recording recording = guest(mode);
    std::vector<WatchedAccesses::Access> stores = accesses_of(recording);
    std::erase_if(stores, [](const auto& a) { return a.kind != StopHit::Kind::write; });
    // Other masters write seldom: theirs first.
    std::stable_partition(stores.begin(), stores.end(), [](const auto& a) { return a.outside; });
    const RecordingFile file = stored(recording);
    std::mt19937_64 random(5);
    for (const std::uint64_t every : {150, 19, 7}) {
      TimelineOptions close = options();
      close.every = every;
      ReplayTimeline timeline(file, nullptr, close);
      for (std::size_t i = 0; i < 20; ++i) {
        const bool is_outside = i < 5 && stores[i].outside;
        const WatchedAccesses::Access& store = stores[is_outside ? i : random() % stores.size()];
        outside += store.outside ? 1 : 0;
        walks += store.walk ? 1 : 0;
        delivered += store.delivered ? 1 : 0;
        // From anywhere behind it, or right behind it.
        const std::uint64_t at = store.at.position.instruction;
        timeline.seek({at + 1 + (i % 2 == 0 ? random() % (kStopsLength - at) : 0), 0});
        const auto size = static_cast<std::uint32_t>(1 + random() % 8);
        const std::uint32_t room = kPageSize - store.address.offset_in_page();
        expect_same_last_store(timeline, store.address, std::min(size, room));
      }
    }
  }
  EXPECT_GT(outside, 0);
  EXPECT_GT(walks, 0);
  EXPECT_GT(delivered, 0);
}

TEST_F(TimelineStops, WhatAnInterruptPushesIsFoundBeforeItAndBehindIt) {
  const Recording recording = guest(GuestMode::kernel);
  const std::vector<WatchedAccesses::Access> all = accesses_of(recording);
  const RecordingFile file = stored(recording);
  ReplayTimeline timeline(file, nullptr, options());
  int met = 0;
  for (const WatchedAccesses::Access& wanted : all) {
    if (!wanted.delivered || wanted.walk || wanted.kind != StopHit::Kind::write) continue;
    if (met == 12) break;
    ++met;
    const StopSet stops = stops_for(wanted);
    timeline.seek(wanted.at.position);
    while (timeline.moment() <= wanted.at) ASSERT_TRUE(timeline.step());
    const ReplayTimeline::Stop back = timeline.run_back_to_stop(stops);
    ASSERT_TRUE(back.hit.has_value());
    EXPECT_LE(timeline.moment(), wanted.at);
    const Moment before = timeline.moment();
    ASSERT_TRUE(timeline.run_to_stop(stops).hit.has_value());
    EXPECT_GT(timeline.moment(), before);
  }
  EXPECT_EQ(met, 12);
}

TEST_F(TimelineStops, ABranchMayBeChangedAndLeavesNothing) {
  const RecordingFile file = stored(guest(GuestMode::flat));
  ReplayTimeline timeline(file, nullptr, options());
  timeline.seek({2000, 0});
  const std::string there = state_hash(timeline.registers(), timeline.memory());
  timeline.begin_branch();
  CpuState state = timeline.registers();
  state.gpr[kEax] ^= 0x1234;
  timeline.change_registers(state);
  EXPECT_TRUE(timeline.registers() == state);
  const auto at = timeline.machine().find(timeline.machine().next_linear());
  ASSERT_TRUE(at.has_value());
  const std::uint8_t changed = static_cast<std::uint8_t>(*timeline.memory().defined_byte(*at) ^ 1);
  timeline.change_memory(*at, {&changed, 1});
  EXPECT_EQ(timeline.memory().defined_byte(*at), changed);
  EXPECT_FALSE(timeline.step_back());
  timeline.end_branch();
  EXPECT_EQ(state_hash(timeline.registers(), timeline.memory()), there);
  timeline.seek({3000, 0});
  Replayer reference(file.recording(), nullptr, {});
  reference.run_to(3000);
  EXPECT_TRUE(timeline.registers() == reference.machine().save());
}

}  // namespace
}  // namespace citcat::test
