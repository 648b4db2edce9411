// A trace made by several processes, or in shares that are merged, is the trace of one replay.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "events/archive/recording_file.h"
#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class Shards : public CitcatTest {
 protected:
  void SetUp() override {
    made_once([this] {
      import_sample("r.citcat");
      good({"checkpoint", "r.citcat", "--every", "50"});
      good({"replay", "r.citcat", "--from-start", "-o", "one.kt"});
    });
    whole_ = read_file(file("one.kt"));
    ASSERT_FALSE(whole_.empty());
  }
  void make_shares() const {
    for (const char* k : {"1/3", "2/3", "3/3"}) {
      good({"replay", "r.citcat", "--unchecked", "--shard", k, "-o", "s.kt.zst"});
    }
  }

  std::string whole_;
};

/// An archive of two: the sample with another AX, and the sample.
void write_two_recordings(const std::string& from, const std::string& to) {
  const RecordingFile source = RecordingFile::open(from);
  Recording recording = source.recording().clone();
  RecordingFileWriter writer(to);
  for (std::size_t number = 0; number < 2; ++number) {
    writer.select(number);
    const auto evidence = source.evidence();
    for (BusTransaction t; evidence->next(t);) writer.write(t);
    set_register(recording.initial, "eax", number == 0 ? 0x0f4c : 0x0f4d);
    writer.add(recording);
  }
  writer.close();
}

TEST_F(Shards, OfALaterRecordingOfAnArchiveAreOfThatOne) {
  write_two_recordings(file("r.citcat"), file("two.citcat"));
  good({"checkpoint", "two.citcat@1", "--every", "50"});
  good({"replay", "two.citcat@1", "--unchecked", "--jobs", "2", "-o", "jobs.kt"});
  EXPECT_TRUE(read_file(file("jobs.kt")) == whole_);
}

TEST_F(Shards, SeveralProcessesWriteTheTraceOfOne) {
  for (const char* jobs : {"2", "5"}) {
    for (const char* output : {"jobs.kt", "jobs.kt.zst"}) {
      good({"replay", "r.citcat", "--unchecked", "--jobs", jobs, "-o", output});
      good({"cat", output});
      EXPECT_TRUE(run({"cat", output}).out == whole_) << jobs << ' ' << output;
    }
  }
  good({"replay", "r.citcat", "--from", "120", "--to", "444", "--from-start", "-o", "part.kt"});
  good({"replay", "r.citcat", "--from", "120", "--to", "444", "--jobs", "3", "-o", "parts.kt"});
  EXPECT_TRUE(read_file(file("part.kt")) == read_file(file("parts.kt")));
}

TEST_F(Shards, MergeToTheWholeTraceInAnyOrder) {
  make_shares();
  good({"merge", "s.0003-of-0003.kt.zst", "s.0001-of-0003.kt.zst", "s.0002-of-0003.kt.zst", "-o",
        "merged.kt"});
  EXPECT_TRUE(read_file(file("merged.kt")) == whole_);
}

TEST_F(Shards, TakeTheirNumberFromTheBatchSystem) {
  ::setenv("SLURM_ARRAY_TASK_ID", "7", 1);
  ::setenv("SLURM_ARRAY_TASK_MIN", "6", 1);
  ::setenv("SLURM_ARRAY_TASK_MAX", "8", 1);
  good({"replay", "r.citcat", "--unchecked", "--shard", "auto", "-o", "s.kt"});
  for (const char* name : {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX"}) {
    ::unsetenv(name);
  }
  EXPECT_FALSE(read_file(file("s.0002-of-0003.kt")).empty());
  EXPECT_EQ(run({"replay", "r.citcat", "--shard", "auto", "-o", "s.kt"}).exit_code, 2);
}

TEST_F(Shards, AreLeftAloneWhenTheyAreThereAndMadeAgainWhenTheyAreDamaged) {
  make_shares();
  const std::vector<std::string> second = {"replay", "r.citcat", "--unchecked", "--shard",
                                           "2/3",    "-o",       "s.kt.zst"};
  EXPECT_THAT(run(second).err, HasSubstr("is there already"));
  write_file(file("s.0002-of-0003.kt.zst"), "damaged");
  EXPECT_EQ(run({"merge", "s.0001-of-0003.kt.zst", "s.0002-of-0003.kt.zst", "s.0003-of-0003.kt.zst",
                 "-o", "merged.kt"})
                .exit_code,
            3);
  good(second);
  good({"merge", "s.0001-of-0003.kt.zst", "s.0002-of-0003.kt.zst", "s.0003-of-0003.kt.zst", "-o",
        "merged.kt"});
  EXPECT_TRUE(read_file(file("merged.kt")) == whole_);
}

TEST_F(Shards, AreRefusedWhenTheyAreNotTheWholeOfOneTrace) {
  make_shares();
  good({"replay", "r.citcat", "--unchecked", "--shard", "3/4", "-o", "s.kt.zst"});
  good({"replay", "r.citcat", "--unchecked", "--addresses", "offset", "--shard", "3/3", "-o",
        "o.kt.zst"});
  const std::string first = "s.0001-of-0003.kt.zst", second = "s.0002-of-0003.kt.zst";
  const auto refused = [&](const std::string& third) {
    std::vector<std::string> arguments = {"merge", first, second};
    if (!third.empty()) arguments.push_back(third);
    arguments.insert(arguments.end(), {"-o", "merged.kt"});
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << third << ": " << result.err;
    return result.err;
  };
  EXPECT_THAT(refused(""), HasSubstr("1 of 3 shares missing: s.0003-of-0003.kt.zst"));
  EXPECT_THAT(refused(second), HasSubstr("is share 2 of 3, which was named before"));
  EXPECT_THAT(refused("s.0003-of-0004.kt.zst"), HasSubstr("not shares of one trace"));
  EXPECT_THAT(refused("o.0003-of-0003.kt.zst"), HasSubstr("not shares of one trace"));
}

}  // namespace
}  // namespace citcat::testing
