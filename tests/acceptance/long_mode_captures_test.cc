// Captures of 64-bit machines, in every bus form, must replay to exactly what an independent
// simulator says the machine did: instructions by their KT record, registers at every row of its
// table.
//
// The ordinary run takes the tiny ones; CITCAT_ACCEPTANCE=full (scripts/test-acceptance) all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acceptance/machine_run.h"
#include "capture/import/import.h"
#include "formats/io/input.h"
#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "replay/session/replayer.h"
#include "replay/trace/kt_sink.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/replay/infer/registers/inferred_recording.h"
#include "unit/vector_sink.h"

namespace citcat::test {
namespace {

/// A record of golden.bin.zst (data/machine64/FORMAT64.md).
struct StreamRecord {
  std::uint8_t kind, a, b, c;
  std::uint32_t d;
  std::uint64_t linear, instruction;
  std::uint8_t x[40];
};
static_assert(sizeof(StreamRecord) == 64);

constexpr std::uint8_t kStreamInstruction = 1;

std::vector<StreamRecord> golden_instructions(const std::string& path) {
  constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;
  const auto bytes = read_whole_file(path, kMaxFile);
  std::vector<StreamRecord> all;
  for (std::size_t at = 0; at + sizeof(StreamRecord) <= bytes.size(); at += sizeof(StreamRecord)) {
    StreamRecord record;
    std::memcpy(&record, &bytes[at], sizeof record);
    if (record.kind == kStreamInstruction) all.push_back(record);
  }
  return all;
}

class LongModeCaptures : public testing::TestWithParam<std::pair<std::string, char>> {
 protected:
  void SetUp() override {
    if (machine64_folder().empty()) GTEST_SKIP() << "shared/data/machine64 is not there";
  }
  MachineData data() const { return MachineData(machine64_folder() + "/" + GetParam().first); }
  ImportedRecording imported(IgnoreCounts counts = IgnoreCounts::none) const {
    return import_machine64({GetParam().first, GetParam().second}, counts);
  }
};

/// Registers of a row of hash.csv: icount, rip, cs, eflags, 16 registers, hashes.
void expect_row(const std::vector<std::string>& row, const Engine& engine) {
  constexpr std::uint64_t kFlags = 0x3e7fd5;
  const auto number = [&](std::size_t i) { return std::stoull(row.at(i), nullptr, 16); };
  EXPECT_EQ(engine.rip(), number(1)) << row[0];
  EXPECT_EQ(engine.segment_selector(kCs), number(2)) << row[0];
  EXPECT_EQ(engine.eflags() & kFlags, number(3) & kFlags) << row[0];
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(engine.wide().gpr(i), number(4 + static_cast<std::size_t>(i))) << row[0] << " " << i;
  }
}

/// Each record of the trace is the golden instruction at its place; an instruction that faulted has
/// a golden record too, and none in the trace.
std::uint64_t compare_trace(const std::vector<std::uint8_t>& trace,
                            const std::vector<StreamRecord>& golden) {
  KtReader reader(trace, "trace.kt");
  KtCounter counter;
  KtRecord record;
  std::size_t at = 0;
  std::uint64_t compared = 0;
  while (reader.next(record)) {
    const KtInstruction& i = record.instruction;
    const std::uint64_t number =
        counter.next(i.eip, i.bytes(), i.address_count, i.bits == 64).instruction;
    while (at < golden.size() && golden[at].instruction < number) ++at;
    if (at == golden.size()) break;
    std::size_t found = at;
    while (found < golden.size() && golden[found].instruction == number &&
           golden[found].linear != i.wide_eip()) {
      ++found;
    }
    const bool same = found < golden.size() && golden[found].instruction == number &&
                      golden[found].a == i.size &&
                      std::memcmp(golden[found].x, i.code.data(), i.size) == 0;
    EXPECT_TRUE(same) << number << std::hex << " " << i.wide_eip();
    if (!same) break;
    ++compared;
  }
  return compared;
}

TEST_P(LongModeCaptures, VerifyAndAreTheGroundTruth) {
  const ImportedRecording run = imported();
  Verifier verifier(run.recording, run.read_evidence(), {});
  VectorSink out;
  KtWriter writer(out, KtForm::wide);
  KtSink trace(writer, {});
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(trace);
  Replayer replayer(run.recording, listeners, {});
  std::uint64_t rows = 0;
  ReplayReport report;
  for (const auto& row : csv_rows(data().path("hash.csv.zst"))) {
    const std::uint64_t position = std::stoull(row.at(0));
    report = replayer.run_to(position);
    if (replayer.machine().position().instruction < position) break;  // behind the last transaction
    expect_row(row, replayer.machine().engine());
    ++rows;
  }
  report = verifier.finish(replayer.run_to(~std::uint64_t{0}));
  ASSERT_EQ(report.end, ReplayReport::End::complete)
      << report.divergence->position.instruction << ": " << report.divergence->reason;
  EXPECT_GT(rows, 0u);
  EXPECT_TRUE(verifier.adoptions().empty());
  writer.flush();
  const auto golden = golden_instructions(data().path("golden.bin.zst"));
  EXPECT_GT(compare_trace(out.all, golden), 1000u);
}

/// Behind a write-back cache nothing that a capture of this length shows tells where they were.
TEST_P(LongModeCaptures, InterruptsThatNobodyCountedToAreFound) {
  if (GetParam().second == 'C') GTEST_SKIP() << "frames stay in the cache";
  const ImportedRecording counted = imported();
  ImportedRecording blind = imported(IgnoreCounts::all);
  const PlacementReport report = place_interrupts(blind);
  EXPECT_FALSE(report.divergence) << report.divergence->reason;
  ASSERT_EQ(report.events.size(), counted.recording.interrupts.size());
  for (std::size_t i = 0; i < report.events.size(); ++i) {
    EXPECT_EQ(report.events[i].placement, Placement::unique) << i;
    EXPECT_EQ(blind.recording.interrupts[i].position, counted.recording.interrupts[i].position)
        << i;
  }
}

std::vector<std::pair<std::string, char>> captures() {
  const char* const wanted = std::getenv("CITCAT_ACCEPTANCE");
  const bool full = wanted != nullptr && std::strcmp(wanted, "full") == 0;
  return full ? machine64_captures() : tiny_machine64_captures();
}

INSTANTIATE_TEST_SUITE_P(, LongModeCaptures, testing::ValuesIn(captures()),
                         [](const auto& capture) {
                           return capture.param.first + "_" + capture.param.second;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LongModeCaptures);

}  // namespace
}  // namespace citcat::test
