// The sample capture of a real IBM 5150, from pins to trace: what the replay executes must be what
// the processor's queue-status pins say it executed, and what it writes what the bus carried, in
// the order of the bus.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "acceptance/verified_replay.h"
#include "capture/import/import.h"
#include "formats/io/byte_sink.h"
#include "formats/kt/kt.h"
#include "replay/infer/places/event_placer.h"
#include "replay/infer/registers/state_recovery.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"
#include "unit/capture/shared_data.h"
#include "unit/replay/infer/registers/inferred_recording.h"

namespace citcat::test {
namespace {

// A19 was not captured.
constexpr std::uint32_t kCapturedBits = 0x7ffff;

struct Start {
  std::uint32_t address = 0;
  std::string bytes;
  bool prefix = false;
  bool operator==(const Start&) const = default;
};

struct WrittenByte {
  std::uint32_t address = 0;
  std::uint8_t value = 0;
  bool operator==(const WrittenByte&) const = default;
};

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// The run in the terms of the pins: a prefix is an instruction start of its own, a REP is begun
/// again after an interrupt.
class PinView final : public Observer {
 public:
  void instruction(const ExecutedInstruction& e, Position now) override {
    if (now.iteration != 0) return;
    const DecodedInstruction& info = *e.info;
    for (std::uint32_t i = 0; i < info.prefix_bytes; ++i) {
      starts.push_back({(e.physical.low32() + i) & kCapturedBits, hex({&info.bytes[i], 1}), true});
    }
    starts.push_back(
        {(e.physical.low32() + info.prefix_bytes) & kCapturedBits,
         hex({info.bytes.data() + info.prefix_bytes, std::size_t{info.length} - info.prefix_bytes}),
         false});
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      written.push_back({(a.low32() + static_cast<std::uint32_t>(i)) & kCapturedBits, bytes[i]});
    }
  }
  std::vector<Start> starts;
  std::vector<WrittenByte> written;
};

/// Keeps what is written.
class Kept final : public ByteSink {
 public:
  void write(std::span<const std::uint8_t> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  void finish() override {}
  std::vector<std::uint8_t> bytes;
};

class Ibm5150EndToEnd : public testing::Test {
 protected:
  static ImportedRecording import(const std::string& channels = "") {
    const std::string folder = CITCAT_SOURCE_DIR "/samples/ibm5150";
    ImportOptions options;
    if (!channels.empty()) options.capture.channel_map_path = folder + "/" + channels;
    options.capture.cpu = CpuModel::i8088;
    options.initial_state_path = folder + "/state.json";
    options.start = Where{Where::Kind::interrupt, 0};
    return import_to_memory({folder + "/area5150.sr"}, options);
  }

  /// From interrupt `n` on, with a state of which nothing is known.
  static ImportedRecording import_at(std::size_t n, const std::string& channels) {
    const std::string folder = CITCAT_SOURCE_DIR "/samples/ibm5150";
    ImportOptions options;
    if (!channels.empty()) options.capture.channel_map_path = folder + "/" + channels;
    options.capture.cpu = CpuModel::i8088;
    options.initial_state.emplace();
    options.start = Where{Where::Kind::interrupt, n};
    return import_to_memory({folder + "/area5150.sr"}, options);
  }

  /// Replays checked; the run must agree to the end.
  static FinalMemory replay(const ImportedRecording& imported, Observer& sink) {
    const VerifiedReplay run(imported, &sink);
    EXPECT_GT(run.totals().instructions.checked, 0u);
    return run.final_memory();
  }

  /// Sample in which the first interrupt is acknowledged: the recording begins there.
  static std::uint64_t begin() {
    return std::stoull(test::csv_rows(test::shared_file("ibm5150/oracle_events.csv.gz"))[0][1]);
  }
  /// Last sample of the capture; the oracle was made from a longer one.
  static constexpr std::uint64_t kEnd = 657000;
};

TEST_F(Ibm5150EndToEnd, FinalMemoryIsThatOfTheBus) {
  PinView view;
  const FinalMemory memory = replay(import(), view);
  EXPECT_GT(memory.bytes, 0u);
  EXPECT_EQ(memory.different, 0u);
}

TEST_F(Ibm5150EndToEnd, InstructionsAreThoseOfTheQueueStatusPins) {
  if (test::shared_file("ibm5150").empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  PinView view;
  replay(import(), view);
  std::vector<Start> oracle;
  for (const auto& row : test::csv_rows(test::shared_file("ibm5150/oracle_instr_qs.csv.gz"))) {
    if (std::stoull(row.at(1)) <= begin()) continue;
    oracle.push_back(
        {static_cast<std::uint32_t>(std::stoul(row.at(2), nullptr, 16)) & kCapturedBits, row.at(3),
         row.at(4) == "1"});
  }
  // The capture ends inside an instruction or two, which the replay may not complete.
  constexpr std::size_t kUnfinished = 3;
  ASSERT_GE(view.starts.size() + kUnfinished, oracle.size());
  const std::size_t common = std::min(view.starts.size(), oracle.size());
  ASSERT_GT(common, 600u);
  for (std::size_t i = 0; i + 1 < common; ++i) {
    ASSERT_EQ(view.starts[i].address, oracle[i].address) << i;
    ASSERT_EQ(view.starts[i].prefix, oracle[i].prefix) << i;
    ASSERT_EQ(view.starts[i].bytes, oracle[i].bytes) << i;
  }
}

TEST_F(Ibm5150EndToEnd, WritesAreThoseOfTheBusInItsOrder) {
  if (test::shared_file("ibm5150").empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  PinView view;
  replay(import(), view);
  std::vector<WrittenByte> oracle;
  for (const auto& row : test::csv_rows(test::shared_file("ibm5150/oracle_cycles.csv.gz"))) {
    if (row.at(3) != "MEMW" || std::stoull(row.at(1)) <= begin()) continue;
    if (std::stoull(row.at(2)) >= kEnd) continue;
    oracle.push_back(
        {static_cast<std::uint32_t>(std::stoul(row.at(4), nullptr, 16)) & kCapturedBits,
         static_cast<std::uint8_t>(std::stoul(row.at(5), nullptr, 16))});
  }
  ASSERT_GT(oracle.size(), 1000u);
  ASSERT_GE(view.written.size(), oracle.size());
  view.written.resize(oracle.size());  // the instruction that the capture ends in
  EXPECT_TRUE(view.written == oracle);
}

TEST_F(Ibm5150EndToEnd, EveryReadOfDataIsComparedInItsOrder) {
  if (test::shared_file("ibm5150").empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  std::uint64_t read = 0;
  for (const auto& row : test::csv_rows(test::shared_file("ibm5150/oracle_cycles.csv.gz"))) {
    if (row.at(3) != "MEMR" || std::stoull(row.at(1)) <= begin()) continue;
    if (std::stoull(row.at(2)) < kEnd) ++read;
  }
  ASSERT_GT(read, 1000u);
  const ImportedRecording imported = import();
  EXPECT_EQ(VerifiedReplay(imported).totals().reads, read);
}

TEST_F(Ibm5150EndToEnd, AReadOfDataThatStandsTwiceIsNoticed) {
  ImportedRecording imported = import();
  const std::vector<BusTransaction> evidence = imported.evidence;
  std::size_t tried = 0;
  for (std::size_t i = 0; i < evidence.size(); i += 997) {
    if (evidence[i].op != BusOp::data_read) continue;
    imported.evidence = evidence;
    imported.evidence.insert(imported.evidence.begin() + static_cast<std::ptrdiff_t>(i),
                             evidence[i]);
    Verifier verifier(imported.recording, imported.read_evidence(), {});
    Listeners listeners;
    listeners.add(verifier);
    Replayer replayer(imported.recording, listeners, {});
    EXPECT_EQ(replayer.run().end, ReplayReport::End::diverged) << i;
    ++tried;
  }
  EXPECT_GT(tried, 10u);
}

/// Without the queue-status pins nothing tells where instructions begin: the search must find every
/// interrupt where those pins say it was.
TEST_F(Ibm5150EndToEnd, InterruptsAreFoundWithoutTheQueueStatusPins) {
  const ImportedRecording counted = import();
  ImportedRecording blind = import("no_queue_status.json");
  ASSERT_EQ(blind.recording.totals.instruction_starts, 0u);
  const std::size_t count = blind.recording.interrupts.size();
  ASSERT_EQ(count, counted.recording.interrupts.size());
  ASSERT_GT(count, 0u);
  const PlacementReport report = place_interrupts(blind);
  EXPECT_FALSE(report.divergence);
  ASSERT_EQ(report.events.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(report.events[i].placement, Placement::unique) << i;
    EXPECT_EQ(blind.recording.interrupts[i].position, counted.recording.interrupts[i].position)
        << i;
  }
  PinView with_pins, without;
  replay(counted, with_pins);
  Verifier verifier(blind.recording, blind.read_evidence(), {});
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(without);
  Replayer replayer(blind.recording, listeners, {});
  EXPECT_EQ(replayer.run().end, ReplayReport::End::complete);
  EXPECT_TRUE(without.starts == with_pins.starts);
  EXPECT_TRUE(without.written == with_pins.written);
}

/// Keeps the registers as each interrupt from outside finds them: a delivery is told before it is
/// made.
struct InterruptedStates final : Observer {
  Machine* machine = nullptr;
  std::vector<CpuState> states;
  void delivered(const DeliveredEvent& event, Position) override {
    if (event.kind == DeliveredEvent::Kind::external) states.push_back(machine->save());
  }
};

std::vector<CpuState> states_at_interrupts(const ImportedRecording& imported) {
  InterruptedStates sink;
  Replayer replayer(imported.recording, &sink, {});
  sink.machine = &replayer.machine();
  replayer.run();
  return sink.states;
}

/// Recovered at every interrupt, with and without the queue-status pins: what is said to be known
/// is what the run from the state given by hand has, and the run to the end agrees with the bus.
TEST_F(Ibm5150EndToEnd, RegistersAreRecoveredAtEveryInterrupt) {
  const std::vector<CpuState> truth = states_at_interrupts(import());
  ASSERT_GT(truth.size(), 2u);
  for (const char* channels : {"", "no_queue_status.json"}) {
    for (std::size_t n = 0; n < truth.size(); ++n) {
      SCOPED_TRACE(std::string(channels) + " interrupt " + std::to_string(n));
      ImportedRecording imported = import_at(n, channels);
      const RecoveredState recovered = recover_registers(imported);
      ASSERT_FALSE(recovered.divergence) << recovered.divergence->reason;
      std::string sources;
      for (const RecoveredRegister& r : recovered.registers) {
        sources += r.name + " " + register_source_name(r.source) + ", ";
        if (r.source == RegisterSource::free || r.source == RegisterSource::assumed) continue;
        EXPECT_EQ(r.value, *get_register(truth[n], r.name) & 0xffff) << r.name;
      }
      std::printf("  interrupt %zu: %s%llu replays\n", n, sources.c_str(),
                  static_cast<unsigned long long>(recovered.replays));
      Verifier verifier(imported.recording, imported.read_evidence(), {});
      Replayer replayer(imported.recording, &verifier, {});
      const ReplayReport report = replayer.run();
      EXPECT_EQ(report.end, ReplayReport::End::complete)
          << (report.divergence ? report.divergence->reason : "");
      EXPECT_GT(verifier.totals().writes.checked, 0u);
      EXPECT_EQ(report.interrupts, truth.size() - n);
    }
  }
}

TEST_F(Ibm5150EndToEnd, TheTraceIsTheSameEveryTime) {
  const ImportedRecording imported = import();
  std::vector<std::vector<std::uint8_t>> traces;
  for (int i = 0; i < 2; ++i) {
    Kept kept;
    KtWriter writer(kept);
    KtSink trace(writer, {});
    replay(imported, trace);
    writer.flush();
    traces.push_back(kept.bytes);
  }
  EXPECT_FALSE(traces[0].empty());
  EXPECT_TRUE(traces[0] == traces[1]);
}

}  // namespace
}  // namespace citcat::test
