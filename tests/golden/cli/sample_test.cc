// The whole path on the sample capture, as a user walks it: import, info, replay, dump, verify; and
// the JSON contract of docs/cli.md on the way.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "golden/process.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr const char* kAreaState = CITCAT_SOURCE_DIR "/samples/ibm5150/state.json";

std::vector<std::string> keys(const nlohmann::json& object) {
  std::vector<std::string> names;
  for (const auto& item : object.items()) names.push_back(item.key());
  return names;
}

/// The sample imported into a folder of the test's own.
class Sample : public ::testing::Test {
 protected:
  void SetUp() override {
    imported_ = run({"import", kArea5150, "--cpu", "8088", "--initial-state", kAreaState, "--start",
                     "interrupt:0", "-o", "area5150.citcat", "--json"});
    ASSERT_EQ(imported_.exit_code, 0) << imported_.err;
  }

  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }
  /// Runs a command that must succeed and print one JSON object on one line.
  nlohmann::json run_json(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1) << result.out;
    return nlohmann::json::parse(result.out);
  }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  ProcessResult imported_;
};

TEST_F(Sample, ImportReportsWhatItFound) {
  const auto json = nlohmann::json::parse(imported_.out);
  EXPECT_THAT(keys(json),
              IsSupersetOf({"format", "cpu", "transactions", "instructions", "image_bytes",
                            "interrupts", "io_reads", "external_writes", "warnings"}));
  EXPECT_EQ(json.at("cpu"), "8088");
  EXPECT_TRUE(json.at("warnings").is_array());
  EXPECT_GT(json.at("transactions").get<int>(), 0);
}

TEST_F(Sample, ImportIsReproducible) {
  const std::string first = read_file(file("area5150.citcat"));
  const ProcessResult again = run({"import", kArea5150, "--cpu", "8088", "--initial-state",
                                   kAreaState, "--start", "interrupt:0", "-o", "again.citcat"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(first == read_file(file("again.citcat")));
}

/// The sample ends within a REP MOVSW at 15a0b. Before that, interrupts made it begin anew eight
/// times. What a scope holds and what it leaves out are the whole run.
TEST_F(Sample, ARepeatThatNeverCompletesCountsInNoPartOfTheRun) {
  const std::string repeat = "code=15a0b-15a0b";
  for (const std::string tool : {"count", "func"}) {
    const auto completed = [&](const std::string& where) {
      const auto json = run_json({"analyze", "area5150.citcat", "--tool", tool, "--where", where});
      return json.at("tools").at(tool).at("instructions").get<int>();
    };
    EXPECT_EQ(completed(repeat), 0) << tool;
    for (const std::string& where : {repeat, std::string("interrupt")}) {
      EXPECT_EQ(completed(where) + completed("!" + where), 621) << tool << ' ' << where;
    }
  }
}

TEST_F(Sample, VerifyProvesEveryPartOfTheEvidence) {
  const nlohmann::json json = run_json({"verify", "area5150.citcat"});
  EXPECT_THAT(keys(json),
              IsSupersetOf({"verdict", "instructions", "writes", "io_reads", "instruction_stream",
                            "final_memory", "adopted", "divergence"}));
  EXPECT_EQ(json.at("verdict"), "match");
  EXPECT_TRUE(json.at("divergence").is_null());
  for (const char* part : {"writes", "instruction_stream"}) {
    EXPECT_GT(json.at(part).at("checked").get<int>(), 0) << part;
    EXPECT_EQ(json.at(part).at("checked"), json.at(part).at("equal")) << part;
  }
  // The program reads no port after the start, so there is nothing to be equal.
  EXPECT_EQ(json.at("io_reads").at("checked"), json.at("io_reads").at("equal"));
  EXPECT_GT(json.at("final_memory").at("bytes").get<int>(), 0);
  EXPECT_EQ(json.at("final_memory").at("different"), 0);
}

TEST_F(Sample, ReplayReportsTheWholeRun) {
  const nlohmann::json json = run_json({"replay", "area5150.citcat", "-o", "area5150.kt"});
  EXPECT_THAT(keys(json), IsSupersetOf({"instructions", "seconds", "mips", "interrupts",
                                        "exceptions", "io_reads", "external_writes", "end"}));
  EXPECT_EQ(json.at("end"), "complete");
  EXPECT_GT(std::filesystem::file_size(file("area5150.kt")), 0u);
}

TEST_F(Sample, ReplayIsReproducible) {
  ASSERT_EQ(run({"replay", "area5150.citcat", "-o", "one.kt"}).exit_code, 0);
  ASSERT_EQ(run({"replay", "area5150.citcat", "-o", "two.kt"}).exit_code, 0);
  EXPECT_TRUE(read_file(file("one.kt")) == read_file(file("two.kt")));
}

TEST_F(Sample, ReplayToStandardOutputIsTheSameTrace) {
  ASSERT_EQ(run({"replay", "area5150.citcat", "-o", "one.kt"}).exit_code, 0);
  const ProcessResult result = run({"replay", "area5150.citcat", "-o", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(read_file(file("one.kt")) == result.out);
}

TEST_F(Sample, InfoKnowsCaptureRecordingAndTrace) {
  ASSERT_EQ(run({"replay", "area5150.citcat", "-o", "area5150.kt"}).exit_code, 0);
  EXPECT_EQ(run_json({"info", kArea5150}).at("kind"), "capture");
  EXPECT_EQ(run_json({"info", "area5150.citcat"}).at("kind"), "recording");
  EXPECT_TRUE(run_json({"info", "area5150.kt"}).is_object());
}

TEST_F(Sample, DumpListsTheTraceForPeople) {
  ASSERT_EQ(run({"replay", "area5150.citcat", "-o", "area5150.kt"}).exit_code, 0);
  const ProcessResult result = run({"dump", "area5150.kt", "--bits", "16", "--to", "10"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // The first instruction is the first of the timer's handler at 0F23:0A48.
  EXPECT_THAT(result.out, HasSubstr("push cx"));
}

/// It ends within a REP, which does not complete.
TEST_F(Sample, ProfilesHaveTheInstructionsOfTheVerdict) {
  const auto number_after = [&](const std::string& name, const std::string& word) {
    const std::string text = read_file(folder_.path() / name);
    const std::size_t at = text.find(word);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + word.size()));
  };
  for (const std::string name : {"r.folded", "r.callgrind"})
    ASSERT_EQ(run({"replay", "area5150.citcat", "-o", name}).exit_code, 0);
  std::istringstream lines(read_file(folder_.path() / "r.folded"));
  int folded = 0;
  for (std::string line; std::getline(lines, line);)
    folded += std::stoi(line.substr(line.rfind(' ')));
  EXPECT_EQ(folded, 621);
  EXPECT_EQ(number_after("r.callgrind", "summary: "), 621);
  const auto func =
      nlohmann::json::parse(run({"analyze", "area5150.citcat", "--tool", "func", "--json"}).out);
  EXPECT_EQ(func.at("tools").at("func").at("instructions"), 621);
}

TEST_F(Sample, AWrongRegisterIsFoundOut) {
  std::string state = read_file(kAreaState);
  const std::string right = "\"ax\":\"0x0f4d\"";
  ASSERT_NE(state.find(right), std::string::npos);
  state.replace(state.find(right), right.size(), "\"ax\":\"0x0f4c\"");
  write_file(file("wrong.json"), state);
  ASSERT_EQ(run({"import", kArea5150, "--cpu", "8088", "--initial-state", "wrong.json", "--start",
                 "interrupt:0", "-o", "wrong.citcat"})
                .exit_code,
            0);
  const ProcessResult result = run({"verify", "wrong.citcat", "--json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("verdict"), "diverged");
  EXPECT_THAT(keys(json.at("divergence")),
              IsSupersetOf({"position", "transaction", "expected", "found", "causes"}));
  // The sample, and how long after the first one that was.
  const double clock = json.at("divergence").at("clock").get<double>();
  EXPECT_DOUBLE_EQ(json.at("divergence").at("seconds").get<double>(), clock / 9.52381e6);
  const ProcessResult text = run({"verify", "wrong.citcat"});
  EXPECT_THAT(text.out + text.err, ::testing::ContainsRegex("clock [0-9]+ \\(0\\.[0-9]+s\\)"));
}

TEST_F(Sample, ADamagedRecordingIsBadInputAndNamesTheFile) {
  std::string bytes = read_file(file("area5150.citcat"));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x10);
  write_file(file("damaged.citcat"), bytes);
  for (const char* command : {"verify", "replay"}) {
    const ProcessResult result = run({command, "damaged.citcat"});
    EXPECT_EQ(result.exit_code, 3) << command << ": " << result.err;
    EXPECT_THAT(result.err, HasSubstr("damaged.citcat"));
  }
}

TEST_F(Sample, AFullDiskIsASystemError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const ProcessResult result = run({"replay", "area5150.citcat", "-o", "/dev/full"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
}

TEST_F(Sample, AnOutputThatFailsLeavesTheOldFileAsItWas) {
  write_file(file("old.citcat"), "precious");
  write_file(file("cut.sr"), read_file(kArea5150).substr(0, 300000));
  const ProcessResult result = run({"import", "cut.sr", "--cpu", "8088", "--initial-state",
                                    kAreaState, "--start", "interrupt:0", "-o", "old.citcat"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(read_file(file("old.citcat")), "precious");
}

TEST_F(Sample, CapturesAreReadByTime) {
  const nlohmann::json info = run_json({"info", kArea5150});
  EXPECT_DOUBLE_EQ(info.at("clock_hz").get<double>(), 9.52381e6);
  EXPECT_DOUBLE_EQ(info.at("seconds").get<double>(),
                   info.at("last_clock").get<double>() / info.at("clock_hz").get<double>());
  const ProcessResult some =
      run({"dump", kArea5150, "--from", "1.5ms", "--to", "1600us", "--format", "json"});
  ASSERT_EQ(some.exit_code, 0) << some.err;
  std::istringstream lines(some.out);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const double seconds = nlohmann::json::parse(line).at("clock").get<double>() / 9.52381e6;
    EXPECT_GE(seconds, 0.0015);
    EXPECT_LT(seconds, 0.0016);
  }
  EXPECT_GT(count, 10u);
  EXPECT_EQ(run({"dump", kArea5150, "--from", "2ms", "--to", "1ms"}).exit_code, 2);
  const ProcessResult behind = run({"dump", kArea5150, "--from", "1s"});
  EXPECT_EQ(behind.exit_code, 2);
  EXPECT_THAT(behind.err, HasSubstr("expected a time within the capture"));
  const ProcessResult refused = run({"dump", "area5150.citcat", "--from", "1.5ms"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("a time needs a capture of pins"));
}

TEST_F(Sample, ARecordingKnowsTheClockOfItsCapture) {
  const nlohmann::json info = run_json({"info", "area5150.citcat"});
  EXPECT_DOUBLE_EQ(info.at("clock_hz").get<double>(), 9.52381e6);
  const ProcessResult dumped = run({"dump", "area5150.citcat", "--evidence", "--format", "json"});
  ASSERT_EQ(dumped.exit_code, 0) << dumped.err;
  const std::size_t last_line = dumped.out.rfind('\n', dumped.out.size() - 2) + 1;
  const auto first = nlohmann::json::parse(dumped.out.substr(0, dumped.out.find('\n')));
  const auto last = nlohmann::json::parse(dumped.out.substr(last_line));
  EXPECT_DOUBLE_EQ(first.at("seconds").get<double>(), first.at("clock").get<double>() / 9.52381e6);
  EXPECT_NEAR(info.at("seconds").get<double>(),
              last.at("seconds").get<double>() - first.at("seconds").get<double>(), 1e-9);
}

TEST_F(Sample, ARecordingWithoutItsEvidenceKnowsTheClockButNotHowLongItTook) {
  ASSERT_EQ(run({"slim", "area5150.citcat", "-o", "slim.citcat"}).exit_code, 0);
  const nlohmann::json info = run_json({"info", "slim.citcat"});
  EXPECT_DOUBLE_EQ(info.at("clock_hz").get<double>(), 9.52381e6);
  EXPECT_TRUE(info.at("seconds").is_null());
}

TEST_F(Sample, EveryInstructionHasTheClockAtWhichItsPinsShowedIt) {
  const ProcessResult trace = run({"cat", "area5150.citcat", "--clock", "--format", "json"});
  ASSERT_EQ(trace.exit_code, 0) << trace.err;
  const ProcessResult evidence = run({"dump", "area5150.citcat", "--evidence", "--format", "json"});
  ASSERT_EQ(evidence.exit_code, 0) << evidence.err;
  std::vector<std::uint64_t> starts;
  bool prefixed = false;
  std::istringstream transactions(evidence.out);
  for (std::string line; std::getline(transactions, line);) {
    const auto t = nlohmann::json::parse(line);
    if (t.at("op") != "instruction_start") continue;
    // A prefix is a start of its own; the instruction is from there.
    if (!prefixed) starts.push_back(t.at("clock").get<std::uint64_t>());
    prefixed = t.at("flags").dump().find("prefix") != std::string::npos;
  }
  std::size_t number = 0;
  std::istringstream records(trace.out);
  for (std::string line; std::getline(records, line);) {
    const auto record = nlohmann::json::parse(line);
    if (record.contains("event") || record.at("iteration") != 0) continue;
    ASSERT_LT(number, starts.size());
    ASSERT_EQ(record.at("clock").get<std::uint64_t>(), starts[number]) << line;
    ++number;
  }
  EXPECT_GT(number, 500u);
}

TEST_F(Sample, AWaveformHasTheInstructionStreamUnderThePins) {
  const nlohmann::json made = run_json({"convert", kArea5150, "--replay", "area5150.citcat", "--to",
                                        "vcd", "-o", "wave.vcd", "--from", "1ms"});
  EXPECT_TRUE(made.at("warnings").empty()) << made;
  const std::string wave = read_file(file("wave.vcd"));
  EXPECT_THAT(wave, HasSubstr("$timescale 1 ps"));
  EXPECT_THAT(wave, HasSubstr("$var string 1"));
  EXPECT_THAT(wave, HasSubstr(" spush_cx "));
  EXPECT_THAT(wave, HasSubstr(" sinterrupt_08 "));
  // Pins, rate and numbers of samples are those of the capture.
  const nlohmann::json copy = run_json({"info", "wave.vcd"});
  EXPECT_DOUBLE_EQ(copy.at("clock_hz").get<double>(), 9.52381e6);
  EXPECT_EQ(copy.at("last_clock"), run_json({"info", kArea5150}).at("last_clock"));
}

}  // namespace
}  // namespace citcat::testing
