// Captures whose monitor counts something else than instructions: branches, blocks, or pulses of a
// Pentium's pins. The counts are made of the ground truth, the interrupts must be found where it
// has them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "acceptance/golden_branches.h"
#include "acceptance/machine_run.h"
#include "capture/bus/channel_map.h"
#include "replay/infer/places/event_placer.h"
#include "unit/capture/bus/bus_generators.h"
#include "unit/capture/machine_data.h"
#include "unit/kept_evidence.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

std::unique_ptr<CaptureReader> open_bus(const MachineCapture& capture) {
  return open_capture({data_of(capture).path(std::string("bus") + capture.form + ".bin.zst")}, {});
}

/// A capture whose counts are others: [k] in place of k. It ends where these do.
class Recounted final : public CaptureReader {
 public:
  Recounted(std::unique_ptr<CaptureReader> capture, std::vector<std::uint64_t> counts)
      : capture_(std::move(capture)), counts_(std::move(counts)) {}
  const CaptureInfo& info() const override { return capture_->info(); }
  bool next(BusTransaction& out) override {
    if (!capture_->next(out) || out.position.instruction + 1 >= counts_.size()) return false;
    out.position = {counts_[out.position.instruction], 0};
    return true;
  }
  std::optional<CpuState> initial_state() const override { return capture_->initial_state(); }

 private:
  std::unique_ptr<CaptureReader> capture_;
  std::vector<std::uint64_t> counts_;
};

ImportedRecording import_counted(CaptureReader& reader, const MachineCapture& capture,
                                 CountUnit unit) {
  ImportOptions options;
  options.counts = unit;
  options.capture.internal_path = data_of(capture).path("side.csv.zst");
  ImportedRecording imported;
  KeptEvidence evidence(imported.evidence);
  imported.recording = import_from(reader, options, &evidence);
  return imported;
}

class CountedCaptures : public testing::TestWithParam<MachineCapture> {
 protected:
  void SetUp() override {
    counted_ = import_machine(GetParam(), IgnoreCounts::all_but_interrupts);
    if (counted_.recording.interrupts.empty()) GTEST_SKIP() << "has no interrupts";
  }
  Position truth(std::size_t interrupt) const {
    return counted_.recording.interrupts.at(interrupt).position;
  }
  PlacementReport place(ImportedRecording& imported) const {
    const std::vector<Interrupt>& interrupts = imported.recording.interrupts;
    EXPECT_FALSE(interrupts.empty());
    for (const Interrupt& i : interrupts) {
      EXPECT_FALSE(i.position_known);
      EXPECT_TRUE(i.count);
    }
    return place_interrupts(imported);
  }
  void expect_true_places(ImportedRecording& imported) const {
    const std::vector<Interrupt>& interrupts = imported.recording.interrupts;
    const PlacementReport report = place(imported);
    EXPECT_FALSE(report.divergence) << report.divergence->reason << report.divergence->expected;
    ASSERT_EQ(report.events.size(), interrupts.size());
    for (std::size_t i = 0; i < interrupts.size(); ++i) {
      if (GetParam().form != 'C') {
        EXPECT_STREQ(placement_name(report.events[i].placement), "unique") << i;
      }
      // Iterations of a REP are in no count: behind a cache several may fit.
      if (GetParam().form == 'C' && truth(i).iteration != 0) {
        EXPECT_EQ(interrupts[i].position.instruction, truth(i).instruction) << i;
        EXPECT_TRUE(lists(report.events[i], truth(i))) << i;
      } else {
        EXPECT_EQ(interrupts[i].position, truth(i)) << i;
      }
    }
    Verifier verifier(imported.recording, imported.read_evidence(), {});
    Replayer replayer(imported.recording, &verifier, {});
    const ReplayReport run = verifier.finish(replayer.run());
    EXPECT_EQ(run.end, ReplayReport::End::complete) << run.divergence->reason;
    EXPECT_EQ(run.interrupts, interrupts.size());
    print(report);
  }
  static bool lists(const PlacedEvent& e, Position position) {
    return e.position == position ||
           std::find(e.others.begin(), e.others.end(), position) != e.others.end();
  }
  /// Behind a write-back cache a block may hold several boundaries that nothing tells apart. The
  /// right one is among them, up to the first interrupt at which another was taken.
  void expect_places_of_one_block(ImportedRecording& imported) const {
    constexpr std::uint64_t kMaxOfABlock = 100;
    const PlacementReport report = place(imported);
    ASSERT_FALSE(report.events.empty());
    for (const PlacedEvent& e : report.events) {
      EXPECT_NE(e.candidates, 0u);
      EXPECT_LE(e.candidates, kMaxOfABlock);
      const bool all_listed = !e.more && e.candidates == e.others.size() + 1;
      if (all_listed) {
        EXPECT_TRUE(lists(e, truth(e.interrupt))) << truth(e.interrupt).instruction;
      }
      if (e.position != truth(e.interrupt)) break;
    }
    print(report);
  }
  static void print(const PlacementReport& report) {
    std::printf("  %llu instructions replayed for the search; places that fit:",
                static_cast<unsigned long long>(report.instructions));
    for (const PlacedEvent& e : report.events) {
      std::printf(" %llu", static_cast<unsigned long long>(e.candidates));
    }
    std::printf("\n");
  }
  void expect_places(ImportedRecording& imported) const {
    if (GetParam().form == 'C') {
      expect_places_of_one_block(imported);
    } else {
      expect_true_places(imported);
    }
  }

  ImportedRecording counted_;
};

TEST_P(CountedCaptures, TakenBranchesPlaceInterrupts) {
  const auto counts = golden_branches(data_of(GetParam()).path("golden.bin.zst"));
  Recounted reader(open_bus(GetParam()), counts.branches);
  ImportedRecording imported = import_counted(reader, GetParam(), CountUnit::branches);
  expect_places(imported);
}

TEST_P(CountedCaptures, BlocksPlaceInterrupts) {
  const auto counts = golden_branches(data_of(GetParam()).path("golden.bin.zst"));
  Recounted reader(open_bus(GetParam()), counts.blocks);
  ImportedRecording imported = import_counted(reader, GetParam(), CountUnit::blocks);
  expect_places(imported);
}

/// What the pins of a Pentium would show of the same run, pulses of IU and IV or of IBT included.
class DrawnPentium final : public CaptureReader {
 public:
  DrawnPentium(const Traffic& traffic, Tracing tracing)
      : random_(1), wave_(draw_pentium(traffic, tracing, random_)) {
    ChannelMap map;
    map.bus = "pentium";
    match_ = choose_bus(wave_->info(), map, CpuModel::unknown);
    assignment_ = assign_pins(match_, map);
    decoder_ = match_.bus->make(wave_->info(), {*match_.bus, assignment_});
    info_.format = "drawn";
    info_.cpu = match_.bus->cpu;
    info_.bus.bus_bytes = match_.bus->bus_bytes;
    info_.counts = decoder_->counts();
  }
  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override {
    SampleBlock block;
    while (!decoder_->take(out)) {
      if (ended_) return false;
      if (wave_->next(block)) {
        decoder_->decode(block);
      } else {
        decoder_->finish();
        ended_ = true;
      }
    }
    out.index = index_++;
    return true;
  }

 private:
  Random random_;
  std::unique_ptr<Wave> wave_;
  BusMatch match_;
  PinAssignment assignment_;
  std::unique_ptr<BusDecoder> decoder_;
  CaptureInfo info_;
  std::uint64_t index_ = 0;
  bool ended_ = false;
};

/// The halves in which the monitor shows a line of 32 bytes become one burst.
void add_line(Traffic& traffic, const BusTransaction& half) {
  constexpr std::uint32_t kLineBytes = 32;
  BusTransaction* const first = traffic.empty() ? nullptr : &traffic.back();
  if (half.address.value % kLineBytes == 0 || first == nullptr) {
    traffic.push_back(half);
    return;
  }
  ASSERT_EQ(first->address.value + first->size, half.address.value);
  std::copy_n(half.data.begin(), half.size, first->data.begin() + first->size);
  first->size = static_cast<std::uint8_t>(first->size + half.size);
}

/// What the monitor shows behind its state dump, with these counts in place of its own.
Traffic traffic_of(const MachineCapture& capture, const std::vector<std::uint64_t>* counts) {
  const auto reader = open_bus(capture);
  Traffic traffic;
  for (BusTransaction t; reader->next(t);) {
    if (t.has(kStateWindow)) continue;
    if (counts != nullptr && t.position.instruction + 1 >= counts->size()) break;
    if (counts != nullptr) t.position.instruction = (*counts)[t.position.instruction];
    if (t.has(kLine)) {
      add_line(traffic, t);
    } else {
      traffic.push_back(t);
    }
  }
  return traffic;
}

/// The analyser is started with the recording, and the state is known.
ImportedRecording import_drawn(const Traffic& traffic, Tracing tracing,
                               const MachineCapture& capture, const CpuState& state) {
  DrawnPentium reader(traffic, tracing);
  ImportOptions options;
  options.initial_state = state;
  options.capture.cpu = state.model;
  options.capture.internal_path = data_of(capture).path("side.csv.zst");
  ImportedRecording imported;
  KeptEvidence evidence(imported.evidence);
  imported.recording = import_from(reader, options, &evidence);
  return imported;
}

TEST_P(CountedCaptures, PulsesOfThePentiumsPinsPlaceInterrupts) {
  const MachineCapture& capture = GetParam();
  if (capture.form == 'B') GTEST_SKIP() << "lines are not a Pentium's";
  ImportedRecording imported = import_drawn(traffic_of(capture, nullptr), Tracing::completions,
                                            capture, counted_.recording.initial);
  expect_true_places(imported);
}

TEST_P(CountedCaptures, PulsesOfTheBranchPinPlaceInterrupts) {
  const MachineCapture& capture = GetParam();
  if (capture.form == 'B') GTEST_SKIP() << "lines are not a Pentium's";
  const auto counts = golden_branches(data_of(capture).path("golden.bin.zst"));
  ImportedRecording imported = import_drawn(traffic_of(capture, &counts.branches),
                                            Tracing::branches, capture, counted_.recording.initial);
  expect_places(imported);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CountedCaptures);
INSTANTIATE_TEST_SUITE_P(, CountedCaptures, testing::ValuesIn([] {
                           std::vector<MachineCapture> tiny;
                           for (const MachineCapture& capture : acceptance_captures(true))
                             if (capture.name.ends_with("_tiny")) tiny.push_back(capture);
                           return tiny;
                         }()),
                         [](const auto& test) { return capture_text(test.param); });

}  // namespace
}  // namespace citcat::test
