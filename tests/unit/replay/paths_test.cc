// The two ways of following the engine, instruction by instruction and block by block, are one
// replay: the same trace, events, memory and registers, for random programs in every mode.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "formats/kt.h"
#include "replay/kt_sink.h"
#include "replay/replayer.h"
#include "unit/replay/random_guest.h"

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

struct Deliveries final : Sink {
  Detail detail() const override { return Detail::nothing; }
  void block(const ExecutedBlock&, Position) override {}
  void delivered(const DeliveredEvent& e, Position now) override {
    list.push_back(
        {now.instruction, now.iteration, e.vector, e.error_code, e.cs, e.eip, e.cr2, e.eflags});
  }
  std::vector<std::vector<std::uint64_t>> list;
};

struct Outcome {
  ReplayReport report;
  std::vector<std::uint8_t> trace;
  std::vector<std::vector<std::uint64_t>> deliveries;
  CpuState cpu;
  std::vector<Memory::SavedPage> pages;
};

Outcome replay(const Recording& recording, ExecutionPath path, bool with_trace) {
  MemorySink bytes;
  KtWriter writer(bytes);
  KtSink kt(writer, {});
  Deliveries deliveries;
  SinkList sinks;
  sinks.add(deliveries);
  if (with_trace) sinks.add(kt);
  ReplayOptions options;
  options.path = path;
  Replayer replayer(recording, &sinks, options);
  Outcome outcome;
  outcome.report = replayer.run();
  writer.flush();
  outcome.trace = std::move(bytes.bytes);
  outcome.deliveries = std::move(deliveries.list);
  outcome.cpu = replayer.machine().save();
  outcome.pages = replayer.machine().memory().save_changed();
  return outcome;
}

std::string memory_difference(const Recording& recording, const Outcome& a, const Outcome& b) {
  const auto byte_of = [&](const Outcome& o, std::uint32_t page, std::uint32_t i) -> int {
    for (const Memory::SavedPage& p : o.pages) {
      if (p.number == page) return p.data[i];
    }
    const auto image = recording.image.byte(PhysAddr{page * kPageSize + i});
    return image ? *image : 0;
  };
  for (const Outcome* o : {&a, &b}) {
    for (const Memory::SavedPage& p : o->pages) {
      for (std::uint32_t i = 0; i < kPageSize; ++i) {
        if (byte_of(a, p.number, i) != byte_of(b, p.number, i)) {
          return "memory differs at " + std::to_string(p.number * kPageSize + i);
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

/// How many programs of each kind; CITCAT_RANDOM_PROGRAMS asks for more.
std::uint64_t programs() {
  const char* asked = std::getenv("CITCAT_RANDOM_PROGRAMS");
  return asked != nullptr ? std::strtoull(asked, nullptr, 10) : 6;
}

class RandomPrograms : public testing::TestWithParam<std::tuple<GuestMode, bool>> {};

TEST_P(RandomPrograms, RunTheSameByInstructionsAndByBlocks) {
  const auto [mode, events] = GetParam();
  std::uint64_t total = 0;
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    const Recording recording = random_guest(mode, seed, 60'000, events);
    const Outcome reference = replay(recording, ExecutionPath::instructions, true);
    total += reference.report.instructions;
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, true));
    expect_equal(recording, reference, replay(recording, ExecutionPath::blocks, false));
    if (HasFailure()) return;
  }
  EXPECT_GT(total, 10'000 * programs()) << "most programs ended early";
}

INSTANTIATE_TEST_SUITE_P(, RandomPrograms,
                         testing::Combine(testing::ValuesIn(kGuestModes), testing::Bool()),
                         [](const auto& test) {
                           return guest_mode_name(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "WithEvents" : "");
                         });

}  // namespace
}  // namespace citcat
