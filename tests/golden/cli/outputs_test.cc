// All commands write in one way: what is no file is written and never replaced, links are followed,
// two that write one name at once do not mix, and nobody is left with half of anything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSampleFolder5150 = CITCAT_SOURCE_DIR "/samples/ibm5150/";

/// A command that writes a file: its command line up to the name of that, and what it reads.
struct Writer {
  const char* name;
  std::string command;
};

const std::vector<Writer>& writers() {
  const std::string sample(kSampleFolder5150);
  static const std::vector<Writer> all = {
      {"import", "import " + sample + "area5150.sr --cpu 8088 --initial-state " + sample +
                     "state.json --start interrupt:0 -o "},
      {"replay", "replay r.citcat -o "},
      {"slim", "slim r.citcat -o "},
      {"repair", "repair r.citcat -o "},
      {"merge", "merge one.0001-of-0001.kt -o "},
      {"convert", "convert " + sample + "area5150.sr --to csv -o "},
  };
  return all;
}

class Outputs : public CitcatTest {
 protected:
  void SetUp() override {
    made_once([this] {
      import_sample("r.citcat");
      good({"replay", "r.citcat", "-o", "one.kt", "--shard", "1/1"});
    });
    before_ = files();
  }
  ProcessResult shell(const std::string& script) const { return run_shell(script, file("")); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(file(""))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  /// What the command writes to a file.
  std::string expected(const Writer& writer) const {
    const ProcessResult result = shell("\"$CITCAT\" " + writer.command + "expected -q");
    EXPECT_EQ(result.exit_code, 0) << writer.name << result.err;
    const std::string bytes = read_file(file("expected"));
    std::filesystem::remove(file("expected"));
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }
  std::set<std::string> before_;
};

TEST_F(Outputs, ADeviceIsWrittenAndStays) {
  // The null device's numbers: documentation of Linux, "Linux allocated devices".
  if (::mknod(file("device").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "device nodes cannot be made here";
  }
  std::filesystem::create_symlink("device", file("link"));
  for (const Writer& writer : writers()) {
    for (const char* name : {"device", "link"}) {
      const ProcessResult result = shell("\"$CITCAT\" " + writer.command + name + " -q");
      EXPECT_THAT(result.err, Not(HasSubstr("error"))) << writer.name;
      EXPECT_EQ(std::filesystem::status(file("device")).type(),
                std::filesystem::file_type::character)
          << writer.name;
      EXPECT_TRUE(std::filesystem::is_symlink(file("link"))) << writer.name;
    }
  }
}

TEST_F(Outputs, NothingIsMadeBesideADeviceOrAPipe) {
  shell("mkfifo pipe");
  const auto with_pipe = files();
  for (const char* command :
       {"replay r.citcat -o pipe --shard 1/1", "replay r.citcat -o pipe --format lcov",
        "replay r.citcat -o pipe --format idtrace",
        "analyze r.citcat --tool count --shard 1/1 -o pipe",
        "analyze r.citcat --tool lcov:to=/dev/full"}) {
    const ProcessResult result = shell("\"$CITCAT\" " + std::string(command) + " -q");
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
    EXPECT_EQ(files(), with_pipe) << command;
  }
  EXPECT_FALSE(std::filesystem::exists("/dev/full.asm"));
}

TEST_F(Outputs, ALinkIsFollowedAndStays) {
  for (const Writer& writer : writers()) {
    const std::string bytes = expected(writer);
    write_file(file("target"), "old");
    std::filesystem::create_symlink("target", file("link"));
    EXPECT_EQ(shell("\"$CITCAT\" " + writer.command + "link -q").exit_code, 0) << writer.name;
    EXPECT_TRUE(std::filesystem::is_symlink(file("link"))) << writer.name;
    EXPECT_TRUE(read_file(file("target")) == bytes) << writer.name;
    std::filesystem::remove(file("link"));
    std::filesystem::remove(file("target"));
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, ANamedPipeAndTheStandardOutputAreWrittenThrough) {
  for (const Writer& writer : writers()) {
    const std::string bytes = expected(writer);
    const ProcessResult fifo = shell("mkfifo fifo; cat fifo > got & \"$CITCAT\" " + writer.command +
                                     "fifo -q && wait && test -p fifo && rm fifo");
    EXPECT_EQ(fifo.exit_code, 0) << writer.name << fifo.err;
    EXPECT_TRUE(read_file(file("got")) == bytes) << writer.name;
    for (const char* name : {"-", "/dev/stdout"}) {
      const ProcessResult out =
          shell("{ \"$CITCAT\" " + writer.command + name + " -q; printf behind; } > got");
      EXPECT_EQ(out.exit_code, 0) << writer.name << out.err;
      EXPECT_TRUE(read_file(file("got")) == bytes + "behind") << writer.name << " to " << name;
    }
    std::filesystem::remove(file("got"));
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, AnInputIsNoOutput) {
  const std::string recording = read_file(file("r.citcat"));
  std::filesystem::create_hard_link(file("r.citcat"), file("hard"));
  std::filesystem::create_symlink("r.citcat", file("soft"));
  for (const char* name : {"r.citcat", "./r.citcat", "hard", "soft"}) {
    for (const char* command : {"replay r.citcat -o ", "slim r.citcat -o ", "repair r.citcat -o ",
                                "report r.citcat@1 -o ", "explain r.citcat -o ",
                                "analyze r.citcat --tool count --tool kt:to="}) {
      const ProcessResult result = shell("\"$CITCAT\" " + std::string(command) + name);
      EXPECT_EQ(result.exit_code, 2) << command << name;
      EXPECT_THAT(result.err, HasSubstr("is also an input")) << command << name;
    }
  }
  EXPECT_TRUE(read_file(file("r.citcat")) == recording);
}

TEST_F(Outputs, AnOutputHasAName) {
  for (const Writer& writer : writers()) {
    const ProcessResult result = shell("\"$CITCAT\" " + writer.command + "\"$nothing\" -q");
    EXPECT_EQ(result.exit_code, 2) << writer.name;
    EXPECT_THAT(result.err, HasSubstr("the name is empty")) << writer.name;
  }
  EXPECT_EQ(files(), before_);
}

TEST_F(Outputs, AFullDeviceIsAnErrorAndLeavesNothing) {
  for (const Writer& writer : writers()) {
    const ProcessResult result = shell("\"$CITCAT\" " + writer.command + "/dev/full -q");
    EXPECT_EQ(result.exit_code, 4) << writer.name;
    EXPECT_THAT(result.err, HasSubstr("/dev/full: cannot write: No space left")) << writer.name;
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, ALineToADebuggerThatFailsIsAnErrorAndOneThatEndsIsNone) {
  const std::string session = "printf '+$g#67' | \"$CITCAT\" debug r.citcat --stdio -q";
  const ProcessResult full = shell(session + " > /dev/full");
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_THAT(full.err, HasSubstr("the line to gdb: No space left"));
  const ProcessResult gone = shell("{ " + session + "; echo $? > status; } | true; cat status");
  EXPECT_EQ(gone.out, "0\n") << gone.err;
}

TEST_F(Outputs, WhatCannotBeReadIsNotTakenForAShareOfAnotherKind) {
  const ProcessResult folder = run({"merge", file("").string(), "-o", "out"});
  EXPECT_EQ(folder.exit_code, 4);
  EXPECT_THAT(folder.err, HasSubstr("expected a file, found a directory"));
}

TEST_F(Outputs, DamageThatAProcessOfSeveralMeetsIsBadInput) {
  const std::size_t recording = read_file(file("r.citcat")).size();
  good({"checkpoint", "r.citcat", "--every", "100"});
  std::string bytes = read_file(file("r.citcat"));
  // Damages the checkpoints from which processes begin.
  const std::size_t middle = (recording + bytes.size()) / 2;
  bytes[middle] = static_cast<char>(bytes[middle] ^ 1);
  write_file(file("r.citcat"), bytes);
  const ProcessResult result = run({"analyze", "r.citcat", "--tool", "count", "--jobs", "2"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("in a part of the run: r.citcat:"));
  EXPECT_THAT(result.err, HasSubstr("found damaged bytes"));
}

TEST_F(Outputs, WhatMayNotGrowFurtherIsAnErrorAndTheOldFileStays) {
  for (const Writer& writer : writers()) {
    write_file(file("out"), "old");
    const ProcessResult result =
        shell("ulimit -f 0; \"$CITCAT\" " + writer.command + "out -q 2>/dev/null");
    EXPECT_EQ(result.exit_code, 4) << writer.name;
    EXPECT_EQ(read_file(file("out")), "old") << writer.name;
    std::filesystem::remove(file("out"));
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, TwoThatWriteOneNameAtOnceEachSucceedAndTheFileIsWhole) {
  for (const Writer& writer : writers()) {
    const std::string bytes = expected(writer);
    const ProcessResult result =
        shell("for i in 1 2 3 4; do \"$CITCAT\" " + writer.command +
              "out -q & all=\"$all $!\"; done; for p in $all; do wait $p || exit 9; done");
    EXPECT_EQ(result.exit_code, 0) << writer.name << result.err;
    EXPECT_TRUE(read_file(file("out")) == bytes) << writer.name;
    std::filesystem::remove(file("out"));
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, TwoThatAddToOneArchiveDoSoOneAfterTheOther) {
  const ProcessResult result = shell(
      "for i in 1 2 3 4; do \"$CITCAT\" checkpoint r.citcat --every 100 -q & all=\"$all $!\"; "
      "done; "
      "for p in $all; do wait $p || exit 9; done");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(good({"check", "r.citcat"}), HasSubstr("sound"));
  good({"verify", "r.citcat"});
}

TEST_F(Outputs, WhatAKilledRunLeftIsRemovedByTheNextWhichSaysSo) {
  for (const Writer& writer : writers()) {
    shell("\"$CITCAT\" " + writer.command +
          "out -q >/dev/null 2>&1 & victim=$!; "
          "for i in $(seq 200); do ls | grep -q 'out.citcat-' && break; sleep 0.01; done; "
          "kill -STOP $victim; kill -KILL $victim; wait $victim; true");
    std::filesystem::remove(file("out"));
    const bool left = files() != before_;
    const ProcessResult result = shell("\"$CITCAT\" " + writer.command + "out");
    EXPECT_EQ(result.exit_code, 0) << writer.name << result.err;
    if (left) {
      EXPECT_THAT(result.err, HasSubstr("an earlier run was interrupted and left it"))
          << writer.name;
    }
    std::filesystem::remove(file("out"));
    EXPECT_EQ(files(), before_) << writer.name;
  }
}

TEST_F(Outputs, HintsThatAreRefusedLeaveTheOldArchive) {
  write_file(file("bad.json"), "{\"citcat_hints\": 1, \"recording\": \"00\", \"hints\": []}");
  write_file(file("out"), "old");
  const ProcessResult result =
      shell("\"$CITCAT\" " + writers()[0].command + "out --hints bad.json -q");
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(read_file(file("out")), "old");
}

TEST_F(Outputs, ClosedDescriptorsPutNothingIntoATrace) {
  const std::string bytes = expected(writers()[1]);
  for (const char* closed : {"0<&-", "2>&-", "0<&- 2>&-"}) {
    EXPECT_EQ(shell("\"$CITCAT\" replay r.citcat -o out " + std::string(closed)).exit_code, 0);
    EXPECT_TRUE(read_file(file("out")) == bytes) << closed;
  }
  EXPECT_EQ(shell("\"$CITCAT\" info r.citcat >&-").exit_code, 4);
}

TEST_F(Outputs, ARepairInPlaceKeepsTheDamagedFileUnderItsName) {
  std::filesystem::copy_file(file("r.citcat"), file("cut.citcat"));
  std::filesystem::resize_file(file("cut.citcat"),
                               std::filesystem::file_size(file("cut.citcat")) - 100);
  const std::string damaged = read_file(file("cut.citcat"));
  // As a run leaves it that was ended between keeping the old file and naming the new one.
  std::filesystem::create_hard_link(file("cut.citcat"), file("cut.citcat.damaged"));
  good({"repair", "cut.citcat"});
  EXPECT_TRUE(read_file(file("cut.citcat.damaged")) == damaged);
  EXPECT_THAT(run({"check", "cut.citcat"}).out, HasSubstr("lost before a repair"));
  good({"verify", "cut.citcat"});
}

TEST_F(Outputs, AreNamedAfterTheInputWhereNobodyNamesThem) {
  std::filesystem::copy(std::string(kSampleFolder5150) + "area5150.sr", file("pc.sr"));
  const std::string import =
      std::string("\"$CITCAT\" import pc.sr --cpu 8088 --start interrupt:0 ") + "--initial-state " +
      kSampleFolder5150 + "state.json";
  ASSERT_EQ(shell(import).exit_code, 0);
  ASSERT_EQ(run({"slim", "pc.citcat"}).exit_code, 0);
  std::set<std::string> expected = before_;
  expected.insert({"pc.sr", "pc.citcat", "pc.slim.citcat"});
  EXPECT_EQ(files(), expected);
  // What is there is nobody's to replace.
  const ProcessResult again = shell(import);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("pc.citcat exists already; name another file with --output"));
}

}  // namespace
}  // namespace citcat::testing
