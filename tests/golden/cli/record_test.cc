// `record` and the files around its output, with a program in the emulator's place that sends one
// record and waits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kEmulator = R"(#!/bin/bash
for word; do [[ $word != *,data=* ]] || data=${word#*,data=}; done
data=${data%%,*}
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
          "x.citcat.bin.zst", "x.citcat.side.csv", "x.citcat.lock"})
      if (std::filesystem::exists(file(name))) text += std::string(name) + " ";
    return text;
  }
};

TEST_F(RecordTest, ReplacesNothingThatNobodyHasNamed) {
  const struct {
    const char* output;
    const char* there;
  } cases[] = {{"x.citcat", "x.citcat.bin.zst"},
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

TEST_F(RecordTest, TheSignalsOfTimeoutEndItInOrder) {
  // timeout(1) tells its child, then the child's whole group.
  const ProcessResult result = run_shell(
      "timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset -o x.bin -- ./emulator",
      file(""));
  EXPECT_EQ(names(), "x.bin x.side.csv ") << result.err;
}

TEST_F(RecordTest, NeedsNoRoomForTemporaryFiles) {
  const ProcessResult result = run_shell(
      "TMPDIR=/nowhere timeout 2 \"$CITCAT\" record --monitor monitor.so --start reset "
      "-o x.bin -- ./emulator",
      file(""));
  EXPECT_EQ(names(), "x.bin x.side.csv ") << result.err;
}

}  // namespace
}  // namespace citcat::testing
