// Parts of a run, each compared from a checkpoint: what they find together is what a comparison of
// the whole finds, and where that does not agree they do not say that it does.

#include "replay/run/part_comparison.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capture/import/import.h"
#include "replay/run/replay_session.h"
#include "replay/run/verified_run.h"
#include "replay/verify/verifier.h"
#include "unit/temporary_folder.h"
#include "unit/x86/golden_trace.h"

namespace citcat::test {
namespace {

namespace fs = std::filesystem;

class PartComparison : public TemporaryFolder {
 protected:
  using Evidence = std::vector<BusTransaction>;

  static ImportedRecording linux_start() {
    const fs::path sample = fs::path(CITCAT_SOURCE_DIR) / "samples/linux";
    ImportOptions options;
    options.capture.internal_path = sample / "start.side.csv";
    return import_to_memory({sample / "start.bin.zst"}, options);
  }
  /// With checkpoints of the run as it is, and then with evidence that was changed.
  RecordingFile file_of(ImportedRecording imported, const std::function<void(Evidence&)>& change) {
    write(imported);
    const RecordingFile whole = RecordingFile::open(path("r.citcat"));
    CheckpointTaker::Options every;
    every.every = *imported.recording.instructions / 16;
    CheckpointedRun run = run_with_checkpoints(whole, every, {});
    EXPECT_TRUE(run.sure());
    if (change) {
      change(imported.evidence);
      write(imported);
    }
    run.taker.append_to(path("r.citcat"), run.run.end, run.run.adoptions);
    return RecordingFile::open(path("r.citcat"));
  }
  void write(const ImportedRecording& imported) {
    RecordingFileWriter writer(path("r.citcat"));
    for (const BusTransaction& t : imported.evidence) writer.write(t);
    writer.finish(imported.recording);
  }
  /// What so many parts find together.
  static std::optional<ComparedPart> together(const RecordingFile& file, unsigned count) {
    const Checkpoints checkpoints(file);
    const std::vector<PartOfRun> parts = parts_to_compare(file, checkpoints, {}, count);
    EXPECT_EQ(parts.size(), count);
    std::vector<ComparedPart> compared;
    for (const PartOfRun& part : parts) {
      const auto one = compare_part(file, checkpoints, part, {}, nullptr);
      if (!one) return std::nullopt;
      compared.push_back(*one);
    }
    return join_parts(compared);
  }
  static void expect_same_as_the_whole(const RecordingFile& file, unsigned count) {
    SessionOptions options;
    options.plain_first = true;
    ReplaySession session(file, nullptr, options);
    const ReplayReport report = session.run();
    const VerifyTotals& totals = session.verifier()->totals();
    const std::optional<ComparedPart> found = together(file, count);
    ASSERT_TRUE(found) << count;
    EXPECT_EQ(found->report.end, report.end);
    EXPECT_EQ(found->report.instructions, report.instructions);
    EXPECT_EQ(found->report.interrupts, report.interrupts);
    EXPECT_EQ(found->report.exceptions, report.exceptions);
    EXPECT_EQ(found->report.external_writes, report.external_writes);
    EXPECT_EQ(found->totals.writes.checked, totals.writes.checked);
    EXPECT_EQ(found->totals.write_backs.checked, totals.write_backs.checked);
    EXPECT_EQ(found->totals.write_backs.equal, totals.write_backs.equal);
    EXPECT_EQ(found->totals.io_reads.equal, totals.io_reads.equal);
    EXPECT_EQ(found->totals.io_writes.equal, totals.io_writes.equal);
    EXPECT_EQ(found->totals.reads, totals.reads);
    EXPECT_EQ(found->totals.adopted, totals.adopted);
    EXPECT_EQ(found->totals.single_bit_changes, totals.single_bit_changes);
    EXPECT_EQ(found->totals.first_single_bit_change, totals.first_single_bit_change);
    EXPECT_EQ(found->totals.evidence_bytes, totals.evidence_bytes);
    EXPECT_EQ(found->model_specific_results, session.model_specific_results());
    const FinalMemory memory = session.compare_final(nullptr);
    EXPECT_EQ(found->memory.bytes, memory.bytes);
    EXPECT_EQ(found->memory.different, memory.different);
  }
  /// The first such transaction in the last quarter.
  static BusTransaction& late(Evidence& evidence, BusOp op) {
    std::size_t i = evidence.size() / 4 * 3;
    while (evidence[i].op != op) ++i;
    return evidence[i];
  }
};

TEST_F(PartComparison, FindsWhatAComparisonOfTheWholeFinds) {
  const RecordingFile file = file_of(linux_start(), {});
  for (const unsigned parts : {2u, 3u, 8u}) expect_same_as_the_whole(file, parts);
}

/// A capture of processes from an independent machine: every access (A), every write (B), and lines
/// alone (C).
class PartComparisonOfProcesses : public PartComparison, public testing::WithParamInterface<char> {
 protected:
  void SetUp() override {
    PartComparison::SetUp();
    if (!fs::exists(kCapture)) GTEST_SKIP() << kCapture << " is absent";
  }
  static ImportedRecording processes() {
    ImportOptions options;
    options.capture.internal_path = kCapture / "side.csv.zst";
    return import_to_memory({kCapture / (std::string("bus") + GetParam() + ".bin.zst")}, options);
  }
  static inline const fs::path kCapture =
      fs::path(shared_data_folder()) / "data/machine/lin_procs_small";
};
INSTANTIATE_TEST_SUITE_P(All, PartComparisonOfProcesses, testing::Values('A', 'B', 'C'));

TEST_P(PartComparisonOfProcesses, FindsWhatAComparisonOfTheWholeFinds) {
  const RecordingFile file = file_of(processes(), {});
  for (const unsigned parts : {2u, 8u}) expect_same_as_the_whole(file, parts);
}

TEST_P(PartComparisonOfProcesses, DoesNotAgreeWhereAWriteShowsSomethingElse) {
  const RecordingFile file =
      file_of(processes(), [](Evidence& e) { late(e, BusOp::data_write).data[0] ^= 0x40; });
  EXPECT_FALSE(together(file, 3));
}

TEST_P(PartComparisonOfProcesses, DoesNotAgreeWhereCodeIsFetchedFromElsewhere) {
  const RecordingFile file = file_of(processes(), [](Evidence& e) {
    BusTransaction& fetch = late(e, BusOp::code_read);
    fetch.address = fetch.address.plus32(0x1000);
  });
  EXPECT_FALSE(together(file, 3));
}

TEST_F(PartComparison, DoesNotAgreeWhereALineShowsSomethingElse) {
  const RecordingFile file =
      file_of(linux_start(), [](Evidence& e) { late(e, BusOp::data_write).data[1] ^= 0x40; });
  EXPECT_FALSE(together(file, 3));
}

TEST_F(PartComparison, DoesNotAgreeWhereALineIsFilledFromElsewhere) {
  const RecordingFile file = file_of(linux_start(), [](Evidence& e) {
    BusTransaction& fill = late(e, BusOp::data_read);
    fill.address = fill.address.plus32(0x100000);
  });
  EXPECT_FALSE(together(file, 3));
}

TEST_F(PartComparison, IsOfOneRunOnlyWhereEachPartBeginsAsTheOneBeforeEnds) {
  ComparedPart first, second;
  first.end = {1, 2};
  second.begin = {1, 3};
  EXPECT_FALSE(join_parts({first, second}));
  second.begin = first.end;
  EXPECT_TRUE(join_parts({first, second}));
}

TEST_F(PartComparison, IsOfOneProcessorOnlyWhereItsStoresHaveOneOrder) {
  ComparedPart first, second;
  first.orders = {{5, 0}};
  second.orders = {{5, 1}};
  EXPECT_FALSE(join_parts({first, second}));
  second.orders = {{5, 0}, {6, 1}};
  EXPECT_TRUE(join_parts({first, second}));
}

}  // namespace
}  // namespace citcat::test
