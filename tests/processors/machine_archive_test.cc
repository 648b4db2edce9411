// What an archive says of several processors together: numbers and notes that cannot be.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/archive/recording_check.h"
#include "formats/io/error.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

using ::testing::HasSubstr;

class MachineArchives : public TemporaryFolder {
 protected:
  /// Recordings of nothing, with a transaction each.
  void write(std::size_t recordings, EvidenceMode evidence = EvidenceMode::full) const {
    RecordingFileOptions options;
    options.evidence = evidence;
    RecordingFileWriter writer(path("r"), options);
    for (std::size_t i = 0; i < recordings; ++i) {
      BusTransaction t;
      t.op = BusOp::halt;
      writer.select(i);
      writer.write(t);
      Recording recording;
      recording.totals.transactions = 1;
      writer.add(recording);
    }
    writer.close();
  }
  static BusNote invalidation(std::uint8_t processor, std::uint64_t clock) {
    BusNote note;
    note.processor = processor;
    note.clock = clock;
    return note;
  }
  /// What opening each recording and checking all of them says is wrong.
  void expect_refused(const std::string& text) const {
    for (const char* const name : {"r@0", "r@1"}) {
      try {
        (void)RecordingFile::open(path(name));
        ADD_FAILURE() << name << " was opened: " << text;
      } catch (const FormatError& error) {
        EXPECT_THAT(error.what(), HasSubstr(text));
      }
    }
    const RecordingCheck check = check_recording(path("r"));
    ASSERT_FALSE(check.sound()) << text;
    EXPECT_THAT(check.scan.damage.front().message, HasSubstr(text));
  }
};

TEST_F(MachineArchives, AreReadProcessorByProcessor) {
  write(2);
  add_machine(path("r"), {2, true, true}, std::vector{invalidation(1, 5), invalidation(0, 5)});
  EXPECT_TRUE(check_recording(path("r")).sound());
  ASSERT_TRUE(MachineFile::find(path("r")));
  EXPECT_EQ(MachineFile::find(path("r"))->notes().size(), 2u);
  EXPECT_EQ(RecordingFile::open(path("r@1")).number(), 1u);
  EXPECT_THROW((void)RecordingFile::open(path("r")), UsageError);
}

TEST_F(MachineArchives, HaveARecordingOfEachProcessor) {
  for (const bool leaves_out : {false, true}) {
    write(2);
    add_machine(path("r"), {3, true, leaves_out}, {});
    expect_refused("expected a recording of each of 3 processors, found 2");
    write(3);
    add_machine(path("r"), {2, true, leaves_out}, {});
    expect_refused("expected a recording of each of 2 processors, found 3");
  }
}

TEST_F(MachineArchives, HaveSeveralProcessors) {
  for (const std::size_t processors : {0u, 1u}) {
    write(2);
    add_machine(path("r"), {processors, true, true}, {});
    expect_refused("processors: expected several, found " + std::to_string(processors));
  }
}

TEST_F(MachineArchives, SayOnceHowManyProcessorsTheyHave) {
  write(2);
  add_machine(path("r"), {2, true, true}, {});
  add_machine(path("r"), {2, true, true}, {});
  expect_refused("expected one MACH chunk for an archive, found another");
}

TEST_F(MachineArchives, HaveInvalidationsByTheirProcessors) {
  write(2);
  add_machine(path("r"), {2, true, false}, std::vector{invalidation(2, 5)});
  expect_refused("expected invalidations by 2 processors, found one by number 2");
}

TEST_F(MachineArchives, HaveNotesInTheOrderOfClocks) {
  write(2);
  add_machine(path("r"), {2, true, false}, std::vector{invalidation(1, 6), invalidation(1, 5)});
  expect_refused("expected clocks in their order, found 5 after 6");
}

TEST_F(MachineArchives, HaveTheEvidenceThatWhatTheyLeaveOutFollowsFrom) {
  write(2, EvidenceMode::digests);
  add_machine(path("r"), {2, true, true}, {});
  expect_refused("expected evidence of every processor");
}

}  // namespace
}  // namespace citcat::test
