// Whatever way an input comes, a command answers the same: from a file, through a pipe, by a name
// of the standard input. What cannot be read again must not lose what was looked at.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A way for an input to come. In the script INPUT is the name of the file, COMMAND the command
/// line with NAME for its argument.
struct Way {
  const char* name;
  const char* argument;
  const char* script;
};
constexpr Way kWays[] = {
    {"pipe", "-", "{ cat INPUT || true; } | COMMAND"},
    {"slow_pipe", "-", "{ head -c 5 INPUT; sleep 0.1; tail -c +6 INPUT || true; } | COMMAND"},
    {"redirection", "-", "COMMAND < INPUT"},
    {"dev_stdin", "/dev/stdin", "{ cat INPUT || true; } | COMMAND"},
    {"dev_stdin_of_a_file", "/dev/stdin", "COMMAND < INPUT"},
    {"fifo", "fifo", "mkfifo fifo; cat INPUT > fifo & COMMAND"},
    {"process_substitution", "<(cat INPUT)", "COMMAND"},
};

/// What a command says and writes, but for the name of its input.
struct Answer {
  int exit_code = -1;
  std::string out, written;
  bool operator==(const Answer&) const = default;
};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

class StandardInput : public CitcatTest {
 protected:
  void SetUp() override {
    made_once([this] {
      import_sample("r.citcat");
      good({"replay", "r.citcat", "-o", "r.kt"});
      good({"replay", "r.citcat", "-o", "r.ktz"});
      good({"replay", "r.citcat", "-o", "r.kt.zst"});
      good({"convert", sample("area5150.sr"), "--to", "record-csv", "-o", "bus.csv"});
      good({"convert", sample("area5150.sr"), "--to", "native", "-o", "bus.native"});
      std::filesystem::copy_file(sample("area5150.sr"), file("pins.sr"));
      std::filesystem::copy_file(sample("state.json"), file("state.json"));
      good({"convert", "pins.sr", "--to", "vcd", "-o", "pins.vcd"});
      shell("gzip -k bus.csv; head -c -100 r.citcat > cut.citcat");
    });
  }
  static std::string sample(const std::string& name) {
    return std::string(CITCAT_SOURCE_DIR "/samples/ibm5150/") + name;
  }
  ProcessResult shell(const std::string& script) const { return run_shell(script, file("")); }

  /// `command` has NAME for its input, and writes `out`, if anything.
  Answer answer(const std::string& command, const std::string& script) const {
    std::filesystem::remove(file("out"));
    std::filesystem::remove(file("fifo"));
    const ProcessResult result = shell(replaced(script, "COMMAND", "\"$CITCAT\" " + command));
    Answer answer{result.exit_code, result.out, ""};
    if (std::filesystem::exists(file("out"))) answer.written = read_file(file("out"));
    EXPECT_THAT(result.err, ::testing::Not(HasSubstr("error"))) << command;
    return answer;
  }
  /// `command` answers the same whatever way `input` comes.
  void expect_same(const std::string& command, const std::string& input) const {
    Answer expected = answer(replaced(command, "NAME", input), "COMMAND");
    expected.out = without_name(expected.out, input);
    EXPECT_FALSE(expected.out.empty() && expected.written.empty()) << command << " of " << input;
    for (const Way& way : kWays) {
      SCOPED_TRACE(command + " of " + input + " by " + way.name);
      Answer found = answer(replaced(replaced(command, "NAME", way.argument), "INPUT", input),
                            replaced(way.script, "INPUT", input));
      found.out = without_name(found.out, input);
      EXPECT_EQ(found.exit_code, expected.exit_code);
      EXPECT_EQ(found.out, expected.out);
      EXPECT_TRUE(found.written == expected.written);
    }
  }
  /// JSON without the name of the input, and without how long it took.
  static std::string without_name(const std::string& out, const std::string& input) {
    if (out.empty() || out.front() != '{') {
      std::string text = out;
      for (const std::string& name : {std::string("(standard input)"), std::string("/dev/stdin"),
                                      std::string("fifo"), input}) {
        text = replaced(text, name, "-");
      }
      constexpr std::string_view kDescriptor = "/dev/fd/";
      for (std::size_t at = 0; (at = text.find(kDescriptor, at)) != std::string::npos; ++at) {
        const std::size_t end = text.find_first_not_of("0123456789", at + kDescriptor.size());
        text.replace(at, std::min(end, text.size()) - at, "-");
      }
      return text;
    }
    auto json = nlohmann::json::parse(out, nullptr, false);
    if (json.is_discarded()) return out;
    for (const char* key : {"file", "files", "seconds", "mips"}) json.erase(key);
    return json.dump();
  }
};

class TraceInput : public StandardInput, public ::testing::WithParamInterface<const char*> {};

TEST_P(TraceInput, ReadsTheSame) {
  const char* const input = GetParam();
  expect_same("info NAME --json", input);
  expect_same("dump NAME", input);
  expect_same("dump NAME --from 100 --to 110 --format json", input);
  expect_same("cat NAME", input);
  expect_same("cat NAME --from 321 --to 400", input);
  expect_same("cat NAME --from 20 --format text", input);
}

/// GoogleTest wants letters, digits and underscores in names.
std::string name_of(const ::testing::TestParamInfo<const char*>& input) {
  return replaced(input.param, ".", "_");
}
INSTANTIATE_TEST_SUITE_P(Forms, TraceInput, ::testing::Values("r.kt", "r.ktz", "r.kt.zst"),
                         name_of);

TEST_F(StandardInput, ARecordingReadsTheSame) {
  for (const char* command :
       {"info NAME --json", "dump NAME", "dump NAME --evidence --from 3000 --to 3100", "cat NAME",
        "cat NAME --format text --from 600", "verify NAME --json", "replay NAME -o out --json",
        "replay NAME -o out --jobs 2 --json", "explain NAME --json", "check NAME --json",
        "repair NAME -o out --json", "slim NAME -o out --json"}) {
    expect_same(command, "r.citcat");
  }
  expect_same("repair NAME -o out --json", "cut.citcat");
}

class CaptureInput : public StandardInput, public ::testing::WithParamInterface<const char*> {};

TEST_P(CaptureInput, OfRecordsAndOfPinsReadsTheSame) {
  const char* const input = GetParam();
  expect_same("info NAME --json", input);
  expect_same("dump NAME --from 100 --to 200 --format csv", input);
  expect_same("lint NAME --json", input);
  expect_same("convert NAME --to record-csv -o - -q", input);
  expect_same("convert NAME --to native -o out -q", input);
  expect_same(
      "import NAME -o out --no-provenance --cpu 8088 --initial-state state.json "
      "--start interrupt:0 --json",
      input);
}

INSTANTIATE_TEST_SUITE_P(Forms, CaptureInput,
                         ::testing::Values("bus.csv", "bus.csv.gz", "bus.native", "pins.sr",
                                           "pins.vcd"),
                         name_of);

TEST_F(StandardInput, WhatIsFoundOutFromPinsIsTheSame) {
  expect_same("import NAME --explain-channels", "pins.sr");
  expect_same(
      "import NAME -o out --no-provenance --cpu 8088 --recover-state --start interrupt:0 "
      "--json",
      "pins.sr");
}

/// Eight bytes each: one-byte instructions, one behind the other.
std::string long_trace(std::uint32_t records) {
  std::string kt;
  for (std::uint32_t i = 0; i < records; ++i) {
    const std::uint32_t address = 0x1000 + i;
    for (int byte = 0; byte < 4; ++byte) kt += static_cast<char>(address >> (8 * byte));
    kt += std::string("\1\x90\0\0", 4);
  }
  return kt;
}

TEST_F(StandardInput, NoRecordOfALongTraceIsLost) {
  write_file(file("long.kt"), long_trace(40000));
  expect_same("info NAME --json", "long.kt");
  expect_same("dump NAME --format csv", "long.kt");
  expect_same("cat NAME --from 16383 --to 16390", "long.kt");
  const auto info = nlohmann::json::parse(good({"info", "long.kt", "--json"}));
  EXPECT_EQ(info.at("instructions"), 40000);
}

class StandardStreams : public CitcatTest {
 protected:
  void SetUp() override { import_sample("r.citcat"); }
  ProcessResult shell(const std::string& script) const { return run_shell(script, file("")); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(file(""))) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
};

constexpr const char* kImport =
    " import " CITCAT_SOURCE_DIR
    "/samples/ibm5150/area5150.sr --cpu 8088 --initial-state " CITCAT_SOURCE_DIR
    "/samples/ibm5150/state.json --start interrupt:0 -o ";

TEST_F(StandardStreams, RecordingsGoToTheStandardOutputWhole) {
  good({"slim", "r.citcat", "-o", "slim.citcat"});
  good({"repair", "r.citcat", "-o", "repaired.citcat"});
  const std::pair<std::string, std::string> commands[] = {
      {kImport, "r.citcat"},
      {" slim r.citcat -o ", "slim.citcat"},
      {" repair r.citcat -o ", "repaired.citcat"}};
  const std::set<std::string> before = files();
  for (const auto& [command, same] : commands) {
    for (const char* name : {"-", "/dev/stdout"}) {
      const ProcessResult result = shell("\"$CITCAT\"" + command + name + " | cat");
      EXPECT_EQ(result.exit_code, 0) << command << name << result.err;
      EXPECT_TRUE(result.out == read_file(file(same))) << command << name;
    }
  }
  EXPECT_EQ(files(), before) << "a file was left behind";
}

TEST_F(StandardStreams, CommandsFollowEachOtherThroughPipes) {
  const ProcessResult result = shell(std::string("\"$CITCAT\"") + kImport +
                                     "- | \"$CITCAT\" slim - -o - | \"$CITCAT\" verify - --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"verdict\":\"match\""));
  const ProcessResult traced =
      shell("cat r.citcat | \"$CITCAT\" replay - -o - | \"$CITCAT\" info -");
  EXPECT_EQ(traced.exit_code, 0) << traced.err;
  EXPECT_THAT(traced.out, HasSubstr("KT trace"));
}

TEST_F(StandardStreams, AnOutputAndJsonDoNotMix) {
  for (const std::string& command :
       {std::string(kImport) + "-", std::string(" slim r.citcat -o -"),
        std::string(" repair r.citcat -o -"), std::string(" replay r.citcat -o -"),
        std::string(" convert " CITCAT_SOURCE_DIR
                    "/samples/ibm5150/area5150.sr --to record-csv -o -")}) {
    const ProcessResult result = shell("\"$CITCAT\"" + command + " --json");
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.out, IsEmpty()) << command;
  }
}

TEST_F(StandardStreams, WhatMustBeAFileIsAskedFor) {
  for (const char* command : {"checkpoint -", "place -", "repair -", "repair /dev/stdin"}) {
    const ProcessResult result = shell(std::string("cat r.citcat | \"$CITCAT\" ") + command);
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
  }
  EXPECT_EQ(run({"explain", "r.citcat", "-o", "-"}).exit_code, 2);
  EXPECT_EQ(files(), std::set<std::string>{"r.citcat"});
}

TEST_F(StandardStreams, OfASessionAreItsCommandsAndNotItsRecording) {
  for (const char* command :
       {"cat r.citcat | \"$CITCAT\" session -", "\"$CITCAT\" session - < r.citcat",
        "\"$CITCAT\" session /dev/stdin < r.citcat"}) {
    const ProcessResult result = shell(command);
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("commands come from the standard input")) << command;
  }
}

TEST_F(StandardStreams, AnInputWantedTwiceIsRefusedByName) {
  good({"convert", CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", "--to", "record-csv", "-o",
        "bus.csv"});
  const ProcessResult result = shell(
      "cat bus.csv | \"$CITCAT\" import - --cpu 8088 --initial-state /dev/stdin --start "
      "interrupt:0 -o x.citcat");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("is needed a second time"));
  EXPECT_FALSE(std::filesystem::exists(file("x.citcat")));
}

TEST_F(StandardStreams, WhatAShellHasReadOfAFileIsNotReadAgain) {
  write_file(file("long.kt"), long_trace(40000));
  const ProcessResult rest =
      shell("{ dd bs=8 count=3 of=/dev/null status=none; \"$CITCAT\" info - --json; } < long.kt");
  EXPECT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.out, HasSubstr("\"instructions\":39997"));
}

}  // namespace
}  // namespace citcat::testing
