// `record` and the files around its output, with a program in the emulator's place that sends one
// record and waits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

// The record is a chunk by itself (docs/formats/capture.md, "Stored records").
constexpr const char* kEmulator = R"(#!/bin/bash
for word; do [[ $word != *,data=* ]] || data=${word#*,data=}; done
data=${data%%,*}
printf '\x2b\0\0\0\x01\0\0\0' >&"$data"
printf '\0%.0s' {1..24} >&"$data"
printf '\x0f\x01\0' >&"$data"
printf '\0%.0s' {1..20} >&"$data"
printf '\x09\x01\x10\0\x02%.0s' 1 >&"$data"
printf '\0%.0s' {1..15} >&"$data"
trap 'exit 0' TERM
for n in {1..300}; do sleep 0.1; done
)";

class RecordTest : public CitcatTest {
 protected:
  void SetUp() override {
    write_file(file("emulator"), kEmulator);
    std::filesystem::permissions(file("emulator"), std::filesystem::perms::owner_all);
    write_file(file("monitor.so"), "");
  }
  ProcessResult recorded(const std::string& output) const {
    return run({"record", "--monitor", "monitor.so", "-o", output, "--", "./emulator"});
  }
  /// What the folder holds besides the emulator.
  std::string names() const {
    std::string text;
    for (const char* name :
         {"x.bin", "x.side.csv", "x.bin.lock", "x.bin.partial", "x.side.csv.partial", "x.citcat",
          "x.citcat.binz", "x.citcat.side.csv", "x.citcat.lock"})
      if (std::filesystem::exists(file(name))) text += std::string(name) + " ";
    return text;
  }
};

TEST_F(RecordTest, ReplacesNothingThatNobodyHasNamed) {
  const struct {
    const char* output;
    const char* there;
  } cases[] = {{"x.citcat", "x.citcat.binz"},
               {"x.citcat", "x.citcat.side.csv"},
               {"x.citcat", "x.citcat.lock"},
               {"x.bin", "x.side.csv"},
               {"x.bin", "x.bin.lock"}};
  for (const auto& c : cases) {
    write_file(file(c.there), "precious");
    const ProcessResult result = recorded(c.output);
    EXPECT_EQ(result.exit_code, 4) << c.there << result.err;
    EXPECT_THAT(result.err, HasSubstr(c.there));
    EXPECT_EQ(names(), std::string(c.there) + " ") << "before the emulator was started";
    EXPECT_EQ(read_file(file(c.there)), "precious");
    std::filesystem::remove(file(c.there));
  }
}

TEST_F(RecordTest, RefusesWhatCannotBeRecordedBeforeTheGuestStarts) {
  // A QEMU that says its version, and leaves a file where it is started for anything else.
  write_file(file("qemu-system-x86_64"),
             "#!/bin/sh\n[ $# = 1 ] || touch started\necho QEMU emulator version $(cat version)\n");
  std::filesystem::permissions(file("qemu-system-x86_64"), std::filesystem::perms::owner_all);
  write_file(file("vmlinuz"), "kernel");
  const struct {
    const char* version;
    std::vector<std::string> options, command;
    const char* says;
  } cases[] = {
      {"7.2.22 (Debian 1:7.2+dfsg-7)", {}, {"./qemu-system-x86_64"}, "expected QEMU 9.2 or newer"},
      {"9.1.0", {}, {"./qemu-system-x86_64"}, "found 9.1"},
      {"10.0.2", {"--exact"}, {"./qemu-system-x86_64", "-smp", "64"}, "-smp 14 in its place"},
      {"10.0.2", {"--exact"}, {"./qemu-system-x86_64", "-cpu", "max"}, "-avx"},
      {"10.0.2", {}, {"qemu-system-aarch64"}, "write qemu-system-x86_64"},
      {"10.0.2", {}, {"./qemu-system-amd64"}, "no such program"},
      {"10.0.2", {}, {"./qemu-system-x86_64", "-m", "5X"}, "-m 5X"},
      {"10.0.2",
       {"--start", "driver"},
       {"./qemu-system-x86_64", "-kernel", "vmlinuz"},
       "memmap=64K$0x6000000"},
  };
  for (const auto& c : cases) {
    write_file(file("version"), c.version);
    std::vector<std::string> words{"record", "--monitor", "monitor.so", "-o", "x.bin"};
    words.insert(words.end(), c.options.begin(), c.options.end());
    words.push_back("--");
    words.insert(words.end(), c.command.begin(), c.command.end());
    const ProcessResult result = run(words);
    EXPECT_TRUE(result.exit_code == 2 || result.exit_code == 4) << result.exit_code;
    EXPECT_THAT(result.err, HasSubstr(c.says));
    EXPECT_FALSE(std::filesystem::exists(file("started"))) << c.says;
    EXPECT_EQ(names(), "");
  }
}

TEST_F(RecordTest, ChoosesANameThatNothingHas) {
  write_file(file("recording.citcat"), "precious");
  write_file(file("recording-2.citcat.lock"), "somebody's");
  run_shell("timeout 1 \"$CITCAT\" record --monitor monitor.so -- ./emulator", file(""));
  EXPECT_EQ(read_file(file("recording.citcat")), "precious");
  EXPECT_FALSE(std::filesystem::exists(file("recording-2.citcat")));
  // One record is no recording: its capture stays, by the name that was chosen.
  EXPECT_TRUE(std::filesystem::exists(file("recording-3.citcat.binz")) ||
              std::filesystem::exists(file("recording-3.citcat")));
}

TEST_F(RecordTest, TheSignalsOfTimeoutEndItInOrder) {
  // timeout(1) tells its child, then the child's whole group.
  const ProcessResult result = run_shell(
      "timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset -o x.bin -- ./emulator",
      file(""));
  EXPECT_EQ(names(), "x.bin x.side.csv ") << result.err;
}

/// The end of a capture as `info` says it.
std::string end_of(const std::string& json) {
  const std::size_t begin = json.find("\"end\"");
  return begin == std::string::npos ? json : json.substr(begin, json.find(',', begin) - begin);
}

TEST_F(RecordTest, KeepsWhatAnEmulatorHasSentThatIsKilled) {
  std::string dying = kEmulator;
  dying.replace(dying.find("trap"), std::string::npos, "kill -KILL $$\n");
  write_file(file("emulator"), dying);
  const ProcessResult result = recorded("x.bin");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("./emulator was ended by signal 9"));
  EXPECT_THAT(result.err, HasSubstr("x.bin holds the 1 bus records"));
  EXPECT_EQ(names(), "x.bin x.side.csv ");
  EXPECT_EQ(end_of(run({"info", "--json", "x.bin"}).out), "\"end\":\"source gone\"");
}

TEST_F(RecordTest, StoresRecordsInFewerBytes) {
  const ProcessResult result = run_shell(
      "timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset -o x.binz -- ./emulator",
      file(""));
  EXPECT_TRUE(std::filesystem::exists(file("x.side.csv"))) << result.err;
  const ProcessResult whole = run_shell(
      "timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset -o y.bin -- ./emulator",
      file(""));
  const std::string dumped = run({"dump", "y.bin"}).out;
  EXPECT_FALSE(dumped.empty()) << whole.err;
  EXPECT_EQ(run({"dump", "x.binz"}).out, dumped);
  EXPECT_EQ(end_of(run({"info", "--json", "x.binz"}).out),
            end_of(run({"info", "--json", "y.bin"}).out));
  const ProcessResult several =
      run({"record", "--monitor", "monitor.so", "-o", "z.binz", "--", "./emulator", "-smp", "2"});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_THAT(several.err, HasSubstr("z.binz: .binz holds the records of one processor only"));
}

TEST_F(RecordTest, KeepsWhatIsWholeOfAChunk) {
  std::string dying = kEmulator;
  // Another chunk follows, of two records; the emulator dies in the second.
  dying.replace(dying.find("trap"), std::string::npos,
                "printf '\\x56\\0\\0\\0\\x02\\0\\0\\0' >&\"$data\"\n"
                "printf '\\0%.0s' {1..24} >&\"$data\"\n"
                "printf '\\x0f\\x01\\0' >&\"$data\"\n"
                "printf '\\0%.0s' {1..20} >&\"$data\"\n"
                "printf '\\x09\\x01\\x10\\0\\x02%.0s' 1 >&\"$data\"\n"
                "printf '\\0%.0s' {1..15} >&\"$data\"\n"
                "printf '\\x0f\\x01\\0' >&\"$data\"\n"
                "kill -KILL $$\n");
  write_file(file("emulator"), dying);
  for (const char* output : {"x.bin", "x.binz"}) {
    const ProcessResult result = recorded(output);
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_THAT(result.err, HasSubstr(std::string(output) + " holds the 2 bus records"));
    EXPECT_EQ(end_of(run({"info", "--json", output}).out), "\"end\":\"source gone\"");
    std::filesystem::remove(file("x.side.csv"));
  }
}

TEST_F(RecordTest, NeedsNoRoomForTemporaryFiles) {
  const ProcessResult result = run_shell(
      "TMPDIR=/nowhere timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset "
      "-o x.bin -- ./emulator",
      file(""));
  EXPECT_EQ(names(), "x.bin x.side.csv ") << result.err;
}

TEST_F(RecordTest, SaysWhyAnAddressOfAKernelMayNeverBeReached) {
  write_file(file("silent"), "#!/bin/sh\n");
  std::filesystem::permissions(file("silent"), std::filesystem::perms::owner_all);
  write_file(file("vmlinuz"), "x");
  for (const std::string append : {"quiet", "quiet nokaslr"}) {
    const ProcessResult result =
        run({"record", "--monitor", "monitor.so", "--start", "address:c1000000", "-o", "x.bin",
             "--", "./silent", "-kernel", "vmlinuz", "-append", append});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("never came"));
    EXPECT_EQ(result.err.find("without nokaslr") != std::string::npos, append == "quiet");
  }
}

TEST_F(RecordTest, KeepsOnlyTheLastPartOfALiveSessionInASizeThatMakesSense) {
  const struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {{{"--keep", "1G"}, "--keep: expected --live"},
               {{"--live", "--keep", "12M"}, "at least 64M"},
               {{"--live", "--keep", "64"}, "at least 64M"},
               {{"--live", "--keep", "many"}, "found many"},
               {{"--live", "--stop", "count:5"}, "console:TEXT"}};
  for (const auto& c : cases) {
    std::vector<std::string> words{"record", "-o", "x.session"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    words.insert(words.end(), {"--", "./emulator"});
    const ProcessResult result = run(words);
    EXPECT_EQ(result.exit_code, 2) << c.says;
    EXPECT_THAT(result.err, HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace citcat::testing
