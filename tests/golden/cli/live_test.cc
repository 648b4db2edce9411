// `record --live` and `--from`, with a program in the emulator's place that writes a log as QEMU
// does: 258 instructions, three bytes of console, a typed one, 16 instructions, the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLiveEmulator = R"sh(#!/bin/bash
if [[ $1 == --version ]]; then echo "QEMU emulator version $(cat version)"; exit; fi
echo "$*" >>words
for word; do
  [[ $word != *rr=replay* ]] || exit 3
  [[ $word != *,rrfile=* ]] || log=${word#*,rrfile=}
  [[ $word != *,logfile=* ]] || console=${word#*,logfile=}
done
printf 'hi\n' >"$console"
{
  printf '\0\xe0\x20\x0c\0\0\0\0\0\0\0\0'
  printf '\0\0\0\x01\x02' # instructions
  printf '\x16\0\0\0\x03\0\0\0\x03' # console
  printf '\x07\0\0\0\0\x01x' # typed
  printf '\x1c\0\0\0\0\0\0\0\x01\x1f\x02'
  printf '\0\0\0\0\x10'
  [[ ! -e cut ]] || exit 1
  [[ ! -e killed ]] || kill -KILL $$
  [[ ! -e reads ]] || cat >typed
  trap 'ended=1' TERM
  [[ ! -e waits ]] || for n in {1..300}; do sleep 0.1; [[ -z $ended ]] || break; done
  printf '\x0f\x27'
} >"$log"
)sh";

class LiveTest : public CitcatTest {
 protected:
  void SetUp() override {
    write_file(file("qemu-system-x86_64"), kLiveEmulator);
    std::filesystem::permissions(file("qemu-system-x86_64"), std::filesystem::perms::owner_all);
    write_file(file("version"), "10.0.2");
    write_file(file("disk.img"), "a disk");
    write_file(file("monitor.so"), "");
  }
  ProcessResult live(const std::string& session) const {
    return run({"record", "--live", "-o", session, "--", "./qemu-system-x86_64", "-nographic",
                "disk.img"});
  }
  /// Whether the session, or anything by its name, is there.
  bool is_there(const std::string& session) const {
    for (const auto& entry : std::filesystem::directory_iterator(file("")))
      if (entry.path().filename().string().starts_with(session)) return true;
    return false;
  }
};

TEST_F(LiveTest, KeepsASessionThatTellsWhatIsInIt) {
  const ProcessResult made = live("s");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("s: 274 instructions"));
  EXPECT_THAT(made.err, HasSubstr("temporary files"));
  EXPECT_THAT(read_file(file("words")), HasSubstr("shift=5,rr=record,rrfile="));
  const ProcessResult list = run({"record", "--from", "s", "--list", "--json"});
  ASSERT_EQ(list.exit_code, 0) << list.err;
  const auto json = nlohmann::json::parse(list.out);
  EXPECT_EQ(json.at("instructions"), 274);
  EXPECT_EQ(json.at("emulator"), "QEMU emulator version 10.0.2");
  EXPECT_EQ(json.at("console").at(0).at("text"), "hi");
  EXPECT_EQ(json.at("console").at(0).at("instructions"), 258);
  EXPECT_EQ(json.at("typed").at(0).at("text"), "x");
  EXPECT_THAT(run({"record", "--from", "s", "--list"}).out, HasSubstr("258 hi"));
  EXPECT_EQ(live("s").exit_code, 4) << "a session replaces nothing";
}

TEST_F(LiveTest, IsRepeatedByTheEmulatorAndTheImagesThatItBeganWith) {
  ASSERT_EQ(live("s").exit_code, 0);
  const auto repeated = [this] {
    return run({"record", "--from", "s", "--monitor", "monitor.so", "-o", "x.citcat"});
  };
  EXPECT_THAT(repeated().err, HasSubstr("ended with status 3")) << "this one repeats nothing";
  const std::string words = read_file(file("words"));
  EXPECT_THAT(words, HasSubstr("shift=5,rr=replay,rrfile=s/qemu.rr"));
  EXPECT_THAT(words, HasSubstr("observe=on"));
  write_file(file("disk.img"), "A disk");
  const ProcessResult changed = repeated();
  EXPECT_EQ(changed.exit_code, 4);
  EXPECT_THAT(changed.err, HasSubstr("disk.img: was changed"));
  std::filesystem::remove(file("disk.img"));
  EXPECT_THAT(repeated().err, HasSubstr("disk.img: does not exist any more"));
  write_file(file("disk.img"), "a disk");
  write_file(file("version"), "10.1.0");
  const ProcessResult other = repeated();
  EXPECT_EQ(other.exit_code, 4);
  EXPECT_THAT(other.err, HasSubstr("expected \"QEMU emulator version 10.0.2\""));
}

TEST_F(LiveTest, IsWholeOrNotThere) {
  for (const char* const fault : {"cut", "killed"}) {
    write_file(file(fault), "");
    const ProcessResult result = live("s");
    EXPECT_EQ(result.exit_code, 4) << fault;
    EXPECT_THAT(result.err, HasSubstr("no session")) << fault;
    EXPECT_FALSE(is_there("s")) << fault;
    std::filesystem::remove(file(fault));
  }
  write_file(file("waits"), "");
  const ProcessResult ended = run_shell(
      "timeout 2 \"$CITCAT\" record --live -o s -- ./qemu-system-x86_64 -nographic", file(""));
  EXPECT_THAT(ended.out, HasSubstr("274 instructions")) << ended.err;
  EXPECT_TRUE(std::filesystem::exists(file("s/session.json")));
  EXPECT_FALSE(std::filesystem::exists(file("s.lock")));
}

TEST_F(LiveTest, PassesOnWhatComesFromAPipe) {
  write_file(file("reads"), "");
  const ProcessResult result = run_shell(
      "printf 'a line that is longer than a port holds\\001\\n' | \"$CITCAT\" record --live -o s "
      "-- "
      "./qemu-system-x86_64 -nographic",
      file(""));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(read_file(file("typed")), "a line that is longer than a port holds\001\n");
}

TEST_F(LiveTest, RefusesWhatIsNoSession) {
  const struct {
    std::vector<std::string> words;
    const char* says;
  } cases[] = {
      {{"--from", "gone", "--list"}, "expected a session"},
      {{"--list"}, "expected --from"},
      {{"--live", "--from", "s", "-o", "x"}, "expected one of the two"},
      {{"--live", "--stop", "count:1", "-o", "s", "--", "./qemu-system-x86_64"}, "console:TEXT"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> words{"record"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    const ProcessResult result = run(words);
    EXPECT_NE(result.exit_code, 0) << c.says;
    EXPECT_THAT(result.err, HasSubstr(c.says));
  }
  std::filesystem::create_directory(file("s"));
  for (const char* const text :
       {"", "{}", "[1]", R"({"kind":"citcat live session","version":2})"}) {
    write_file(file("s/session.json"), text);
    const ProcessResult result = run({"record", "--from", "s", "--list"});
    EXPECT_EQ(result.exit_code, 3) << text << result.err;
    EXPECT_THAT(result.err, HasSubstr("s/session.json:0: expected")) << text;
  }
}

}  // namespace
}  // namespace citcat::testing
