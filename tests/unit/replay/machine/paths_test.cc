// The two ways of following the engine, instruction by instruction and block by block, are one
// replay: the same trace, events, memory and registers, for random programs in every mode.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "formats/kt/kt.h"
#include "replay/engine/engine.h"
#include "replay/machine/fast/block_store.h"
#include "replay/session/digest_sink.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/block_memory.h"
#include "unit/replay/machine/paged_guest.h"
#include "unit/replay/machine/random_guest.h"
#include "unit/replay/machine/repeat_events.h"

namespace citcat {
namespace {

class MemorySink final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> b) override {
    bytes.insert(bytes.end(), b.begin(), b.end());
  }
  void finish() override {}
  std::vector<std::uint8_t> bytes;
};

struct Deliveries final : Observer {
  Interest interest() const override { return {}; }
  void delivered(const DeliveredEvent& e, Position now) override {
    list.push_back(
        {now.instruction, now.iteration, e.vector, e.error_code, e.cs, e.eip, e.cr2, e.eflags});
  }
  std::vector<std::vector<std::uint64_t>> list;
};

/// Every access but those of page walks, by instruction or with blocks. Of the blocks, some must
/// not run and some are taken back, at random. Without `stores`: every read.
class ToldAccesses final : public BlockJudge {
 public:
  ToldAccesses(bool by_blocks, std::uint64_t seed, bool stores = true)
      : by_blocks_(by_blocks), stores_(stores), random_(seed) {}
  void judges(Machine& machine) override { machine_ = &machine; }
  bool judges_blocks() const override { return by_blocks_; }
  Interest interest() const override { return Interest::everything(); }
  bool may_run_block(Position, std::uint32_t) override { return random_() % 16 != 0; }
  BatchRoom may_run_batch(Position, std::uint32_t most) override {
    if (random_() % 4 == 0) return {};
    const auto count = static_cast<std::uint32_t>(random_() % most + 1);
    return {count, random_() % 2 == 0 ? count : static_cast<std::uint32_t>(random_() % count)};
  }
  bool expects_stores() const override { return stores_; }
  bool agrees(const JudgedBlock& block, Position first) override {
    const BlockMemory after(block, machine_->memory());
    if (random_() % 8 == 0) {
      ++taken_back;
      return false;
    }
    for (const BlockRead& r : block.reads) {
      // What was there before the instruction, not what the block left.
      for (std::uint32_t i = 0; i < r.size; ++i) {
        const BlockMemory::Byte byte = after.byte_before(r.instruction, r.address.plus32(i));
        const bool known = byte.state == BlockMemory::Byte::State::known;
        add(first.instruction + r.instruction, 0, r.address.plus32(i), known ? byte.value : 0xee);
      }
    }
    for (const BlockStore& s : stores_ ? block.stores : std::span<const BlockStore>{}) {
      const std::uint64_t at = first.instruction + s.instruction;
      for (std::uint32_t i = 0; i < s.size; ++i) {
        add(at, 1, s.address.plus32(i), s.value[i]);
      }
    }
    ++blocks;
    return true;
  }
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override {
    if (kind == AccessKind::walk) return;  // how often tables are read is the processor's business
    for (std::uint32_t i = 0; i < size; ++i) {
      add(now.instruction, kind == AccessKind::data ? 0 : 2, a.plus32(i),
          *machine_->memory().host(a.plus32(i)));
    }
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    for (std::uint32_t i = 0; stores_ && i < bytes.size(); ++i) {
      add(now.instruction, kind == AccessKind::data ? 1 : 3, a.plus32(i), bytes[i]);
    }
  }

  /// For each instruction: what it read and what it wrote, each in order.
  std::map<std::pair<std::uint64_t, int>, std::vector<std::uint64_t>> list;
  std::uint64_t blocks = 0, taken_back = 0;

 private:
  void add(std::uint64_t instruction, int kind, PhysAddr a, std::uint8_t value) {
    list[{instruction, kind}].push_back(std::uint64_t{a.value} << 8 | value);
  }
  bool by_blocks_;
  bool stores_;
  std::mt19937_64 random_;
  const Machine* machine_ = nullptr;
};

struct Outcome {
  ReplayReport report;
  std::vector<std::uint8_t> trace;
  std::vector<std::vector<std::uint64_t>> deliveries;
  CpuState cpu;
  Memory::SavedPages pages;
};

Outcome replay(const Recording& recording, ExecutionPath path, bool with_trace,
               BlockJudge* judge = nullptr, const std::vector<Observer*>& others = {}) {
  MemorySink bytes;
  KtWriter writer(bytes, kt_form(recording.initial.model));
  KtSink kt(writer, {});
  Deliveries deliveries;
  Listeners listeners;
  listeners.add(deliveries);
  if (with_trace) listeners.add(kt);
  if (judge != nullptr) listeners.add(*judge);
  for (Observer* const other : others) listeners.add(*other);
  ReplayOptions options;
  options.path = path;
  Replayer replayer(recording, listeners, options);
  Outcome outcome;
  outcome.report = replayer.run();
  writer.flush();
  if (with_trace) outcome.trace = std::move(bytes.bytes);
  outcome.deliveries = std::move(deliveries.list);
  outcome.cpu = replayer.machine().save();
  outcome.pages = replayer.machine().memory().save_changed();
  return outcome;
}

std::string memory_difference(const Recording& recording, const Outcome& a, const Outcome& b) {
  const auto byte_of = [&](const Outcome& o, FrameNumber page, std::uint32_t i) -> int {
    for (const auto& p : o.pages) {
      if (p->number == page) return p->data[i];
    }
    const auto image = recording.image.byte(PhysAddr{page * kPageSize + i});
    return image ? *image : 0;
  };
  for (const Outcome* o : {&a, &b}) {
    for (const auto& p : o->pages) {
      for (std::uint32_t i = 0; i < kPageSize; ++i) {
        if (byte_of(a, p->number, i) != byte_of(b, p->number, i)) {
          return "memory differs at " + std::to_string(p->number * kPageSize + i);
        }
      }
    }
  }
  return "";
}

void expect_equal(const Recording& recording, const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.report.end, b.report.end);
  EXPECT_EQ(a.report.instructions, b.report.instructions);
  EXPECT_EQ(a.report.divergence ? a.report.divergence->reason : "",
            b.report.divergence ? b.report.divergence->reason : "");
  EXPECT_EQ(a.deliveries.size(), b.deliveries.size());
  for (std::size_t i = 0; i < std::min(a.deliveries.size(), b.deliveries.size()); ++i) {
    ASSERT_EQ(a.deliveries[i], b.deliveries[i]) << "delivery " << i;
  }
  if (!a.trace.empty() && !b.trace.empty()) {
    const auto [x, y] =
        std::mismatch(a.trace.begin(), a.trace.end(), b.trace.begin(), b.trace.end());
    EXPECT_TRUE(x == a.trace.end() && y == b.trace.end())
        << "traces differ at byte " << x - a.trace.begin();
  }
  EXPECT_TRUE(a.cpu == b.cpu);
  EXPECT_EQ(memory_difference(recording, a, b), "");
}

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

/// How many programs of each kind, and the number of the first; the environment asks for others.
std::uint64_t programs() { return environment_number("CITCAT_RANDOM_PROGRAMS", 1); }
std::uint64_t first_program() { return environment_number("CITCAT_RANDOM_SEED", 1); }

/// The same accesses by the same instructions.
void expect_equal(const ToldAccesses& a, const ToldAccesses& b) {
  for (auto x = a.list.begin(), y = b.list.begin(); x != a.list.end() || y != b.list.end();
       ++x, ++y) {
    ASSERT_TRUE(x != a.list.end() && y != b.list.end());
    ASSERT_EQ(x->first, y->first);
    ASSERT_EQ(x->second, y->second) << x->first.first << " kind " << x->first.second;
  }
}

class RandomPrograms : public testing::TestWithParam<std::tuple<GuestMode, bool>> {
 protected:
  /// Calls `test` with the number and the recording of one program after another, until one fails.
  template <class F>
  static void each_program(std::uint64_t length, F&& test) {
    const auto [mode, events] = GetParam();
    const std::uint64_t first = first_program();
    // What is of its own in compatibility mode is little, and its programs take long.
    const std::uint64_t count =
        mode == GuestMode::compatibility ? (programs() + 1) / 2 : programs();
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
      SCOPED_TRACE("program " + std::to_string(seed));
      Recording recording = random_guest(mode, seed, length, events);
      if (events) add_events_in_repeats(recording, seed);
      test(seed, recording);
      if (HasFailure()) return;
    }
  }
  static constexpr std::uint64_t kLength = 40'000;
  static GuestMode mode() { return std::get<0>(GetParam()); }
};

TEST_P(RandomPrograms, RunTheSameByInstructionsAndByBlocks) {
  std::uint64_t total = 0;
  std::ptrdiff_t in_repeats = 0;
  each_program(kLength, [&](std::uint64_t, const Recording& recording) {
    const Outcome reference = replay(recording, ExecutionPath::instructions, true);
    total += reference.report.instructions;
    in_repeats += std::count_if(reference.deliveries.begin(), reference.deliveries.end(),
                                [](const auto& d) { return d[1] != 0 && d[2] == 2; });
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, true));
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, false));
  });
  EXPECT_GT(total, 10'000 * programs()) << "most programs ended early";
  const bool events = std::get<1>(GetParam());
  EXPECT_TRUE(!events || in_repeats > 0) << "no NMI between two iterations of a repeated string";
}

/// Sees to it that translated code, and blocks, have to be forgotten again and again.
class SmallCodeCache {
 public:
  SmallCodeCache() {
    Engine::set_code_cache(1u << 20);
    fast::BlockStore::set_max_bytes(1u << 15);
  }
  ~SmallCodeCache() {
    Engine::set_code_cache(128u << 20);
    fast::BlockStore::set_max_bytes(fast::BlockStore::kMaxBytes);
  }
};

TEST_P(RandomPrograms, RunTheSameWhenTheCodeCacheOverflows) {
  // Everything is translated again and again, so that a third has many overflows already.
  each_program(kLength / 3, [&](std::uint64_t, const Recording& recording) {
    const Outcome reference = replay(recording, ExecutionPath::instructions, true);
    const SmallCodeCache small;
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, true));
    expect_equal(recording, reference, replay(recording, ExecutionPath::instructions, true));
  });
}

TEST_P(RandomPrograms, RunTheSameFromCheckpointsWhateverWasTranslatedSince) {
  constexpr std::uint64_t kShorter = 30'000, kSpacing = 6'000;
  each_program(kShorter, [&](std::uint64_t seed, const Recording& recording) {
    const Outcome reference = replay(recording, ExecutionPath::instructions, true);
    MemorySink bytes;
    KtWriter writer(bytes, kt_form(recording.initial.model));
    KtSink kt(writer, {});
    Replayer replayer(recording, &kt, {});
    struct Place {
      Replayer::Checkpoint checkpoint;
      std::size_t trace_bytes = 0;
    };
    std::vector<Place> places;
    for (std::uint64_t at = 0; at < kShorter; at += kSpacing) {
      if (replayer.run_to(at).end == ReplayReport::End::diverged) break;
      writer.flush();
      places.push_back({replayer.checkpoint(), bytes.bytes.size()});
    }
    replayer.run_to(kShorter);
    std::mt19937_64 random(seed);
    for (int jump = 0; jump < 8; ++jump) {
      const Place& place = places[random() % places.size()];
      writer.flush();
      bytes.bytes.assign(reference.trace.begin(),
                         reference.trace.begin() + static_cast<std::ptrdiff_t>(place.trace_bytes));
      replayer.restore(place.checkpoint);
      Outcome found;
      found.report = replayer.run_to(jump % 3 == 0 ? random() % kShorter : kShorter);
      if (jump % 3 == 0) continue;  // left somewhere, with what was translated until there
      writer.flush();
      found.trace = bytes.bytes;
      found.deliveries = reference.deliveries;
      found.cpu = replayer.machine().save();
      found.pages = replayer.machine().memory().save_changed();
      expect_equal(recording, reference, found);
    }
  });
}

/// Expects something now and then, and counts what it is told.
class Sampler final : public BlockJudge {
 public:
  explicit Sampler(std::uint64_t seed) : random_(seed) {}
  Interest interest() const override { return Interest::everything(); }
  void judges(Machine&) override {}
  bool judges_blocks() const override { return true; }
  Position expected() override {
    while (next_ < told_) next_ += 1 + random_() % 40;
    return {next_, next_ % 3 == 0 ? static_cast<std::uint32_t>(random_() % 20) : 0};
  }
  bool expects_stores() const override { return false; }
  bool agrees(const JudgedBlock& block, Position first) override {
    told_ = first.instruction;
    return random_() % 8 != 0 || block.count() == 0;
  }
  void agreed(const JudgedBlock& block, Position first) override {
    told_ = first.instruction + block.count();
    ++blocks;
  }
  void instruction(const ExecutedInstruction&, Position now) override {
    told_ = now.instruction + 1;
  }

  std::uint64_t blocks = 0;

 private:
  std::mt19937_64 random_;
  std::uint64_t next_ = 0, told_ = 0;
};

TEST_P(RandomPrograms, RunTheSameWhenOnlySomeBlocksAreCompared) {
  std::uint64_t blocks = 0;
  each_program(kLength, [&](std::uint64_t seed, const Recording& recording) {
    Sampler sampler(seed);
    const Outcome reference = replay(recording, ExecutionPath::instructions, true);
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, true, &sampler));
    blocks += sampler.blocks;
  });
  if (mode() == GuestMode::real) return;
  EXPECT_GT(blocks, 100 * programs());
}

TEST_P(RandomPrograms, TellTheSameAccessesByInstructionsAndByBlocksOfWhichSomeAreTakenBack) {
  std::uint64_t blocks = 0, taken_back = 0;
  each_program(kLength, [&](std::uint64_t seed, const Recording& recording) {
    ToldAccesses reference(false, seed), found(true, seed);
    const Outcome a = replay(recording, ExecutionPath::instructions, true, &reference);
    const Outcome b = replay(recording, ExecutionPath::blocks, true, &found);
    expect_equal(recording, a, b);
    expect_equal(reference, found);
    blocks += found.blocks;
    taken_back += found.taken_back;
  });
  if (mode() == GuestMode::real) return;  // its segments have limits: each instruction is reported
  EXPECT_GT(blocks, 100 * programs());
  EXPECT_GT(taken_back, 10 * programs());
}

TEST_P(RandomPrograms, TellTheSameReadsBeforeAndBehindBlocksThatStoreToOnePlaceMoreThanOnce) {
  std::uint64_t blocks = 0;
  each_program(kLength, [&](std::uint64_t seed, const Recording& recording) {
    ToldAccesses reference(false, seed, false), found(true, seed, false);
    const Outcome a = replay(recording, ExecutionPath::instructions, true, &reference);
    const Outcome b = replay(recording, ExecutionPath::blocks, true, &found);
    expect_equal(recording, a, b);
    expect_equal(reference, found);
    blocks += found.blocks;
  });
  if (mode() == GuestMode::real) return;
  EXPECT_GT(blocks, 100 * programs());
}

/// Wants to know all that is read and stored, and forgets it.
class AllReferences final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::references}; }
};

TEST_P(RandomPrograms, HaveTheSameDigestsByInstructionsAndByBlocksHoweverMuchOthersWant) {
  each_program(kLength / 6, [&](std::uint64_t seed, const Recording& recording) {
    const auto digests = [&](ExecutionPath path, bool trace, BlockJudge* judge, bool references) {
      DigestSink sink;
      AllReferences all;
      std::vector<Observer*> others{&sink};
      if (references) others.push_back(&all);
      const Outcome outcome = replay(recording, path, trace, judge, others);
      return sink.finish(outcome.report.instructions);
    };
    const auto reference = digests(ExecutionPath::instructions, false, nullptr, false);
    ASSERT_FALSE(reference.empty());
    EXPECT_EQ(digests(ExecutionPath::blocks, false, nullptr, false), reference) << "stores alone";
    EXPECT_EQ(digests(ExecutionPath::blocks, true, nullptr, false), reference) << "with a trace";
    EXPECT_EQ(digests(ExecutionPath::blocks, false, nullptr, true), reference) << "with reads";
    ToldAccesses judge(true, seed, false);
    EXPECT_EQ(digests(ExecutionPath::blocks, false, &judge, false), reference) << "compared";
  });
}

TEST(BlocksTakenBack, LeaveVectorRegistersAsInstructionsDo) {
  test::PagedGuest guest;
  guest.recording.initial.cr4 = 0x200;  // SSE
  guest.put(0x20000, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  guest.add({0x0f, 0x10, 0x0d}, {0x20000});  // movups xmm1,[20000h]
  guest.add({0x0f, 0x57, 0xc1});             // again: xorps xmm0,xmm1
  guest.add({0x40, 0xa3}, {0x20100});        // inc eax; mov [20100h],eax
  guest.add({0xeb, 0xf5});                   // jmp again
  guest.recording.instructions = 40'002;
  for (const std::uint64_t seed : {1, 2, 3}) {
    ToldAccesses reference(false, seed), found(true, seed);
    const Outcome a = replay(guest.recording, ExecutionPath::instructions, true, &reference);
    const Outcome b = replay(guest.recording, ExecutionPath::blocks, true, &found);
    expect_equal(guest.recording, a, b);
  }
}

/// Expects no access at any place, and is to be told of every store all the same.
class ToldStores final : public BlockJudge {
 public:
  explicit ToldStores(bool by_blocks) : by_blocks_(by_blocks) {}
  Interest interest() const override { return {}; }
  void judges(Machine&) override {}
  bool judges_blocks() const override { return by_blocks_; }
  Position expected() override { return {~std::uint64_t{0}, 0}; }
  bool expects_stores() const override { return true; }
  bool agrees(const JudgedBlock&, Position) override { return true; }
  void agreed(const JudgedBlock& block, Position first) override {
    for (const BlockStore& s : block.stores) {
      add(first.instruction + s.instruction, s.address, s.bytes());
    }
    ++blocks;
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override {
    if (kind == AccessKind::data) add(now.instruction, a, bytes);
  }

  /// By instruction: address and value of each byte.
  std::map<std::uint64_t, std::vector<std::pair<std::uint32_t, std::uint8_t>>> list;
  std::uint64_t blocks = 0;

 private:
  void add(std::uint64_t instruction, PhysAddr a, std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t b : bytes) {
      list[instruction].push_back({a.low32(), b});
      a = a.plus32(1);
    }
  }
  bool by_blocks_;
};

TEST_P(RandomPrograms, TellEveryStoreWhereNothingElseIsExpected) {
  std::uint64_t blocks = 0, storing = 0;
  each_program(kLength, [&](std::uint64_t, const Recording& recording) {
    ToldStores reference(false), found(true);
    replay(recording, ExecutionPath::instructions, false, &reference);
    replay(recording, ExecutionPath::blocks, false, &found);
    EXPECT_TRUE(reference.list == found.list);
    storing += reference.list.size();
    blocks += found.blocks;
  });
  EXPECT_GT(storing, 1000 * programs());
  if (mode() == GuestMode::real) return;
  EXPECT_GT(blocks, 100 * programs());
}

INSTANTIATE_TEST_SUITE_P(, RandomPrograms,
                         testing::Combine(testing::ValuesIn(kGuestModes), testing::Bool()),
                         [](const auto& test) {
                           return guest_mode_name(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "WithEvents" : "");
                         });

}  // namespace
}  // namespace citcat
