// An observer of plain code is told all of it, once and in order, however it wants to be told from
// one instruction to the next and whoever else listens.

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "replay/machine/executed_block.h"
#include "replay/session/digest_sink.h"
#include "replay/session/replayer.h"
#include "unit/replay/machine/random_guest.h"

namespace citcat::test {
namespace {

constexpr std::uint64_t kAttended = 10'000;

/// An instruction as an observer is told of it.
struct Step {
  std::uint64_t linear = 0;
  std::vector<std::uint64_t> addresses;
  bool operator==(const Step&) const = default;
};
using Steps = std::map<std::uint64_t, Step>;                ///< by position
using Executions = std::map<std::uint64_t, std::uint64_t>;  ///< by linear address

/// Is told of each block, and keeps all of it.
class Keeping : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::blocks}; }
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t) override {
    for (const ExecutedBlock& block : blocks) {
      keep(block, first);
      if (!trailing_) count(block, 1);
      first.instruction += block.count();
    }
  }
  void instruction(const ExecutedInstruction& e, Position now) override {
    alone.insert(now.instruction);
    if (!e.info->is_repeated()) ++executions[e.linear.value];
  }
  Steps steps;
  std::set<std::uint64_t> alone;
  Executions executions;  ///< but for repeated strings

 protected:
  bool trailing_ = false;  ///< what ran() has is counted, too
  virtual void keep(const ExecutedBlock& block, Position first) {
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      const ExecutedInstruction e = block.instruction(i);
      Step step{e.linear.value, {}};
      for (unsigned a = 0; a < e.ea_count; ++a) step.addresses.push_back(e.ea[a].value);
      const bool is_new = steps.emplace(first.instruction + i, std::move(step)).second;
      EXPECT_TRUE(is_new) << first.instruction + i;
    }
  }
  void count(const ExecutedBlock& block, std::uint64_t times) {
    for (std::uint32_t i = 0; i < block.count(); ++i) {
      executions[block.linear(i).value] += times;
    }
  }
};

/// Wants to be told now so, now otherwise.
class Fickle final : public Keeping {
 public:
  Fickle(std::uint64_t seed, bool references) : seed_(seed), references_(references) {}

  Interest interest() const override { return {.code = blocks()}; }
  Interest interest_from(std::uint64_t instruction) override {
    // The same at the same place, whoever else listens.
    const std::uint64_t stretch = instruction / kStretch;
    const std::uint64_t choice = (stretch + seed_) * 0x9e3779b97f4a7c15 >> 61;
    const std::uint64_t until = (stretch + 1) * kStretch;
    trailing_ = choice >= 2 && choice < 5;
    if (trailing_) return {.code = Detail::trail, .trail = kTrail, .until = until};
    return {.code = choice < 2 ? Detail::counts : blocks(), .until = until};
  }
  void passed(std::uint64_t from, std::uint64_t to) override {
    EXPECT_LT(from, to);
    EXPECT_TRUE(passes.empty() || passes.rbegin()->second <= from);
    passes[from] = to;
  }
  void keep(const ExecutedBlock& block, Position first) override {
    Keeping::keep(block, first);
    if (!trailing_) return;
    if (first.instruction != trail_end_) trail_begin_ = first.instruction;
    trail_end_ = first.instruction + block.count();
    trails[trail_begin_] = trail_end_ - trail_begin_;
  }
  void counted(const ExecutedBlock& block, std::uint64_t times) override { count(block, times); }

  static constexpr std::uint64_t kStretch = 97;
  static constexpr std::uint32_t kTrail = 24;
  std::map<std::uint64_t, std::uint64_t> passes;
  std::map<std::uint64_t, std::uint64_t> trails;  ///< instructions, by the first

 private:
  Detail blocks() const { return references_ ? Detail::references : Detail::blocks; }

  std::uint64_t trail_begin_ = 0, trail_end_ = 0;
  std::uint64_t seed_;
  bool references_;
};

void expect_all_is_told(const Fickle& fickle, const Keeping& all, std::uint64_t instructions) {
  EXPECT_EQ(fickle.executions, all.executions);
  for (const auto& [position, step] : fickle.steps) {
    const auto found = all.steps.find(position);
    // Where blocks end has to do with what is made alone.
    if (found == all.steps.end()) continue;
    EXPECT_EQ(step, found->second) << position;
  }
  std::vector<unsigned> told(instructions + 1);
  for (const auto& [from, to] : fickle.passes) {
    for (std::uint64_t p = from; p < to; ++p) ++told[p];
  }
  for (const auto& [position, step] : fickle.steps) ++told[position];
  for (const std::uint64_t p : fickle.alone) ++told[p];
  // A string that is interrupted may be followed by something else that was put in its place.
  for (std::uint64_t p = 0; p < instructions; ++p) {
    EXPECT_EQ(told[p], all.steps.count(p) + all.alone.count(p)) << p;
  }
}

/// Whoever else listens.
enum class Beside : std::uint8_t { nobody, blocks, stores };

void expect_all_is_told(const Recording& recording, std::uint64_t seed, Beside beside,
                        bool references) {
  Keeping all;
  const std::uint64_t instructions = Replayer(recording, &all, {}).run().instructions;
  Fickle fickle(seed, references);
  Keeping blocks;
  DigestSink stores;
  Listeners listeners;
  listeners.add(fickle);
  if (beside == Beside::blocks) listeners.add(blocks);
  if (beside == Beside::stores) listeners.add(stores);
  Replayer(recording, listeners, {}).run();
  expect_all_is_told(fickle, all, instructions);
  EXPECT_FALSE(fickle.passes.empty());
  EXPECT_FALSE(fickle.trails.empty());
  if (beside == Beside::blocks) {
    EXPECT_EQ(blocks.executions, all.executions);
  }
  if (beside == Beside::stores) {
    DigestSink alone;
    Replayer(recording, &alone, {}).run();
    EXPECT_EQ(stores.finish(instructions), alone.finish(instructions));
  }
}

TEST(Interest, MayChangeAtAnyInstructionAndNothingIsLostOrToldTwice) {
  for (const GuestMode mode : kGuestModes) {
    if (mode == GuestMode::compatibility) continue;  // hardly a block runs on the fast tier
    const Recording recording = long_random_guest(mode, kAttended);
    for (const Beside beside : {Beside::nobody, Beside::blocks, Beside::stores}) {
      for (const bool references : {false, true}) {
        SCOPED_TRACE(testing::Message() << guest_mode_name(mode) << " " << static_cast<int>(beside)
                                        << (references ? " with references" : ""));
        expect_all_is_told(recording, 1, beside, references);
      }
    }
  }
}

/// Wants to know what is stored.
class Storing final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::stores}; }
  Interest interest_from(std::uint64_t instruction) override {
    until_ = instruction / kStretch * kStretch + kStretch;
    return {.code = Detail::stores, .until = until_};
  }
  void stored(std::span<const PlainStore> stores, Position from) override {
    EXPECT_LT(from.instruction, until_);
    for (const PlainStore& store : stores) EXPECT_LE(std::popcount(store.size), 1) << store.size;
    told += stores.size();
  }
  void ran(std::span<const ExecutedBlock> all, Position, std::uint32_t) override {
    blocks += all.size();
  }

  static constexpr std::uint64_t kStretch = 1'000;
  std::uint64_t told = 0, blocks = 0;

 private:
  std::uint64_t until_ = 0;
};

/// Wants a trail of all of it, and looks at none.
class Trailing final : public Observer {
 public:
  Interest interest() const override { return {.code = Detail::counts}; }
  Interest interest_from(std::uint64_t) override { return {.code = Detail::trail, .trail = 24}; }
};

TEST(Interest, IsForStoresAloneWhereNobodyIsToldOfBlocks) {
  const Recording recording = long_random_guest(GuestMode::flat, kAttended);
  Storing alone, beside;
  Replayer(recording, &alone, {}).run();
  EXPECT_GT(alone.told, kAttended / 10);
  EXPECT_EQ(alone.blocks, 0u);
  Keeping blocks;
  Listeners listeners;
  listeners.add(beside);
  listeners.add(blocks);
  Replayer(recording, listeners, {}).run();
  EXPECT_EQ(beside.told, 0u);
  EXPECT_GT(beside.blocks, kAttended / 100);
}

TEST(Interest, LeavesTheDigestsOfALongRunTheSame) {
  constexpr std::uint64_t kLong = DigestSink::kInterval + kAttended;
  const Recording recording = long_random_guest(GuestMode::flat, kLong);
  const auto digests = [&](ExecutionPath path, Observer* other) {
    DigestSink sink;
    Listeners listeners;
    listeners.add(sink);
    if (other != nullptr) listeners.add(*other);
    ReplayOptions options;
    options.path = path;
    return sink.finish(Replayer(recording, listeners, options).run().instructions);
  };
  const std::vector<ReplayDigest> expected = digests(ExecutionPath::instructions, nullptr);
  EXPECT_EQ(expected.size(), 2u);
  EXPECT_EQ(digests(ExecutionPath::blocks, nullptr), expected);
  Trailing trailing;
  EXPECT_EQ(digests(ExecutionPath::blocks, &trailing), expected);
}

TEST(Interest, OfSeveralObserversInCountsGivesEachItsOwn) {
  const Recording recording = long_random_guest(GuestMode::flat, kAttended);
  Keeping all;
  const std::uint64_t instructions = Replayer(recording, &all, {}).run().instructions;
  Fickle one(1, false), other(2, false);
  Listeners listeners;
  listeners.add(one);
  listeners.add(other);
  Replayer(recording, listeners, {}).run();
  expect_all_is_told(one, all, instructions);
  expect_all_is_told(other, all, instructions);
}

TEST(Interest, LeavesATrailOfAtLeastWhatWasAskedForBeforeWhateverIsToldNext) {
  const Recording recording = long_random_guest(GuestMode::flat, 6 * kAttended);
  Fickle fickle(5, false);
  Replayer(recording, &fickle, {}).run();
  std::uint64_t looked_at = 0;
  for (const auto& [from, to] : fickle.passes) {
    const auto trail = fickle.trails.find(to);
    // Only counts were asked for, or the trail is of the next stretch.
    if (trail == fickle.trails.end() || from / Fickle::kStretch != to / Fickle::kStretch) continue;
    EXPECT_GE(trail->second, Fickle::kTrail) << from << " to " << to;
    ++looked_at;
  }
  EXPECT_GT(looked_at, 10u);
}

}  // namespace
}  // namespace citcat::test
