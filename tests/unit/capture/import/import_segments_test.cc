// An analyser that was emptied and started again: every part with a state of its own is a
// recording.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/import/import.h"
#include "capture/import/record_csv.h"
#include "events/archive/recording_check.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "unit/capture/import/dump_writes.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint32_t kWindow = 0xfef00000;
constexpr std::size_t kSpins = 400;

BusTransaction transaction(BusOp op, std::uint32_t address, std::uint8_t value,
                           std::uint64_t instruction) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = 1;
  t.flags = kPositionKnown;
  t.position.instruction = instruction;
  t.data[0] = value;
  return t;
}

using Traffic = std::vector<BusTransaction>;

/// 50 instructions, the first of which is counted as number `first`.
Traffic work(std::uint8_t value, std::uint64_t first = 0) {
  Traffic all;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto address = static_cast<std::uint32_t>(0x1000 + i);
    all.push_back(transaction(BusOp::code_read, address, value, first + i));
    all.push_back(transaction(BusOp::io_read, 0x60, static_cast<std::uint8_t>(i), first + i));
  }
  return all;
}

/// A dump that a monitor wrote itself, before instruction `at`.
Traffic dump(std::uint64_t at) {
  Traffic all = dump_writes(kWindow);
  for (BusTransaction& t : all) {
    t.flags |= kPositionKnown;
    t.position.instruction = at;
  }
  return all;
}

Traffic spin(std::size_t rounds = kSpins) {
  Traffic all;
  for (std::size_t i = 0; i < rounds; ++i) {
    all.push_back(transaction(BusOp::code_read, 0x2000, 0xec, 50 + 2 * i));
    all.push_back(transaction(BusOp::io_read, 0x379, 0x80, 50 + 2 * i));
  }
  return all;
}

Traffic marker(std::uint32_t value) { return {memory_write(kWindow + CITCAT_MARK_OFFSET, value)}; }

class Segments : public TemporaryFolder {
 protected:
  std::string write(const std::string& name, std::initializer_list<Traffic> parts) {
    std::string text(record_csv_header());
    text += '\n';
    std::uint64_t index = 0;
    for (const Traffic& part : parts)
      for (BusTransaction t : part) {
        t.index = index++;
        text += record_csv_lines(t, 0) + '\n';
      }
    store(name, text);
    return path(name);
  }
  /// Ends a capture as a monitor does that could not go on.
  void interrupt(const std::string& name, Ending ending) {
    store(name, load(name) + record_csv_cut_line(0, ending) + '\n');
  }
  ImportResult import(const std::vector<std::string>& captures, const ImportOptions& options = {}) {
    return import_capture(captures, options, path("r"));
  }
  RecordingFile recording(std::size_t number) const {
    return RecordingFile::open(path("r") + "@" + std::to_string(number));
  }
};

TEST_F(Segments, EveryFileWithADumpIsARecordingWithoutTheSpinLoops) {
  const ImportResult result = import({write("a", {dump_writes(kWindow), work(1), spin()}),
                                      write("b", {spin(), dump(1000), work(2, 1000)})});
  EXPECT_EQ(result.recordings, 2u);
  EXPECT_EQ(result.transactions, 200u);
  EXPECT_THAT(result.warnings, Contains(HasSubstr("driver that waits for the analyser")));
  for (std::size_t number : {0u, 1u}) {
    const RecordingFile file = recording(number);
    EXPECT_EQ(file.recordings(), 2u);
    EXPECT_EQ(file.recording().io_reads.size(), 50u);
    EXPECT_EQ(file.recording().instructions, 50u);
    EXPECT_EQ(file.recording().image.byte(PhysAddr{0x1000}), 1 + number);
    EXPECT_EQ(file.recording().provenance.files.size(), 2u);
    EXPECT_THAT(file.recording().warnings, Contains(HasSubstr("of 2")));
    const auto evidence = file.evidence();
    std::size_t count = 0;
    for (BusTransaction t; evidence->next(t); ++count) EXPECT_NE(t.address.value, 0x379u);
    EXPECT_EQ(count, 100u);
  }
  EXPECT_TRUE(check_recording(path("r")).sound());
}

TEST_F(Segments, ALoopIsLeftOutHoweverOftenItRan) {
  const ImportResult result = import({write("a", {dump_writes(kWindow), work(1), spin(50'000)}),
                                      write("b", {dump_writes(kWindow), work(2)})});
  EXPECT_EQ(result.transactions, 200u);
  EXPECT_EQ(recording(0).recording().io_reads.size(), 50u);
}

TEST_F(Segments, ALoopThatTheMachineLeftAgainIsKept) {
  const ImportResult result =
      import({write("a", {dump_writes(kWindow), work(1), spin(20'000), work(3, 40'050)}),
              write("b", {dump_writes(kWindow), work(2)})});
  EXPECT_EQ(result.transactions, 300u + 40'000u);
}

TEST_F(Segments, ALoopAtTheEndOfTheCaptureIsWhatTheMachineDid) {
  import({write("a", {dump_writes(kWindow), work(1)}),
          write("b", {dump_writes(kWindow), work(2), spin()})});
  EXPECT_EQ(recording(1).recording().io_reads.size(), 50 + kSpins);
}

TEST_F(Segments, TheNameAloneIsTheFirstRecordingAndSaysSo) {
  import(
      {write("a", {dump_writes(kWindow), work(1)}), write("b", {dump_writes(kWindow), work(2)})});
  const RecordingFile first = RecordingFile::open(path("r"));
  EXPECT_EQ(first.number(), 0u);
  EXPECT_THAT(first.recording().warnings, Contains(HasSubstr("holds 2 recordings")));
  EXPECT_THROW(recording(2), UsageError);
}

TEST_F(Segments, ADriverMayStopAndDumpAgain) {
  const Traffic start = marker(CITCAT_MARK_START), stop = marker(CITCAT_MARK_STOP);
  const ImportResult result =
      import({write("a", {dump_writes(kWindow), start, work(1), stop, spin(), dump_writes(kWindow),
                          start, work(2), stop, spin()})});
  EXPECT_EQ(result.recordings, 2u);
  EXPECT_EQ(recording(0).recording().io_reads.size(), 50u);
  EXPECT_EQ(recording(1).recording().io_reads.size(), 50u);
  EXPECT_EQ(recording(1).recording().image.byte(PhysAddr{0x1000}), 2);
}

TEST_F(Segments, EachRecordingSaysWhyItEnds) {
  const Traffic start = marker(CITCAT_MARK_START), stop = marker(CITCAT_MARK_STOP);
  const std::string first = write("a", {dump_writes(kWindow), start, work(1), stop, work(4),
                                        dump_writes(kWindow), start, work(2)});
  const std::string second = write("b", {dump_writes(kWindow), start, work(3)});
  interrupt("a", Ending::storage_full);
  const ImportResult result = import({first, second});
  ASSERT_EQ(result.recordings, 3u);
  EXPECT_EQ(result.ending, Ending::storage_full) << "what is not as it was meant to be comes first";
  EXPECT_EQ(recording(0).recording().ending, Ending::marker);
  EXPECT_EQ(recording(1).recording().ending, Ending::storage_full);
  EXPECT_EQ(recording(2).recording().ending, Ending::capture_end);
  EXPECT_EQ(recording(1).recording().io_reads.size(), 50u);

  ImportOptions options;
  options.stop = parse_where("instruction:20");
  EXPECT_EQ(import({second}, options).ending, Ending::stop);
}

TEST_F(Segments, AnInterruptionStaysKnownWithoutProvenance) {
  const std::string capture = write("a", {dump_writes(kWindow), work(1)});
  interrupt("a", Ending::source_gone);
  ImportOptions options;
  options.provenance = false;
  import({capture}, options);
  EXPECT_EQ(RecordingFile::open(path("r")).recording().ending, Ending::source_gone);
}

TEST_F(Segments, AnInterruptedRecordingEndsBeforeTheInstructionThatWasGoingOn) {
  const std::string capture = write("a", {dump(1000), work(1, 1000)});
  import({capture});
  EXPECT_EQ(RecordingFile::open(path("r")).recording().instructions, 50u);
  interrupt("a", Ending::source_gone);
  import({capture});
  EXPECT_EQ(RecordingFile::open(path("r")).recording().instructions, 49u);
}

TEST_F(Segments, AFileWithoutADumpIsLeftOutAndNamed) {
  const ImportResult result =
      import({write("a", {work(3)}), write("b", {dump_writes(kWindow), work(2)})});
  EXPECT_EQ(result.recordings, 1u);
  EXPECT_THAT(result.warnings, Contains(HasSubstr("segment 0 has no state dump")));
  EXPECT_EQ(RecordingFile::open(path("r")).recording().image.byte(PhysAddr{0x1000}), 2);
}

TEST_F(Segments, NoDumpAtAllIsAnError) {
  EXPECT_THROW(import({write("a", {work(3)}), write("b", {work(2)})}), FormatError);
  EXPECT_THAT(names(), Not(Contains("r")));
}

TEST_F(Segments, OneOfThemCanBeAskedFor) {
  ImportOptions options;
  options.segment = 1;
  const ImportResult result = import(
      {write("a", {dump_writes(kWindow), work(1)}), write("b", {dump_writes(kWindow), work(2)})},
      options);
  EXPECT_EQ(result.recordings, 1u);
  EXPECT_EQ(RecordingFile::open(path("r")).recording().image.byte(PhysAddr{0x1000}), 2);
}

TEST_F(Segments, DigestsAreAddedToTheRecordingNamed) {
  import(
      {write("a", {dump_writes(kWindow), work(1)}), write("b", {dump_writes(kWindow), work(2)})});
  const std::vector<ReplayDigest> digests = {{10, 77}};
  for (const char* name : {"r@1", "r@0"}) {
    RecordingAppender appender(path(name));
    appender.add_digests(digests);
    appender.finish();
  }
  EXPECT_EQ(recording(0).digests(), digests);
  EXPECT_EQ(recording(1).digests(), digests);
}

TEST_F(Segments, AFileThatHasSuchANameIsMeantItself) {
  EXPECT_EQ(parse_recording_name(path("x@3")).number, 3u);
  EXPECT_EQ(parse_recording_name("a@b").path, "a@b");
  EXPECT_EQ(parse_recording_name("a@").path, "a@");
  store("x@3", "");
  EXPECT_EQ(parse_recording_name(path("x@3")).path, path("x@3"));
  EXPECT_EQ(parse_recording_name(path("x@3")).number, std::nullopt);
}

}  // namespace
}  // namespace citcat::test
