// Every command with a recording of two processors: it works on all of them, or on the one that is
// named, or refuses by name. None takes processor 0 in silence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "golden/process.h"
#include "processors/made_machine.h"

namespace citcat::test {
namespace {

using Json = nlohmann::json;
using citcat::testing::ProcessResult;
using citcat::testing::read_file;
using citcat::testing::run_citcat;
using citcat::testing::write_file;
using ::testing::HasSubstr;

enum class With {
  all,      ///< takes the recording of all of them as one
  each,     ///< says the same of each
  named,    ///< refuses until one is named
  no_care,  ///< takes no recording, or the file as it is
};

struct CommandRow {
  With with;
  /// Behind the recording; what runs without a person and ends by itself.
  std::vector<std::string> arguments;
};

const std::map<std::string, CommandRow>& command_rows() {
  static const std::map<std::string, CommandRow> kRows{
      {"verify", {With::all, {"--json"}}},
      {"explain", {With::all, {"--json"}}},
      {"info", {With::all, {"--json"}}},
      {"sql", {With::all, {"select count(*) from instructions"}}},
      {"check", {With::no_care, {}}},
      {"repair", {With::no_care, {"-o", "repaired.citcat"}}},
      {"report", {With::all, {"-o", "report.html"}}},
      {"replay", {With::each, {"-o", "run.kt"}}},
      {"analyze", {With::each, {"--tool", "count"}}},
      {"count", {With::each, {}}},
      {"bpred", {With::each, {}}},
      {"cache", {With::each, {}}},
      {"checkpoint", {With::each, {}}},
      {"place", {With::each, {}}},
      {"cat", {With::named, {"--format", "text"}}},
      {"dump", {With::named, {}}},
      {"slim", {With::all, {"-o", "slim.citcat"}}},
      {"why", {With::named, {"--register", "eax", "--at", "5"}}},
      {"debug", {With::all, {"--stdio"}}},
      {"view", {With::all, {"--export", "page.html", "--to", "5"}}},
      {"diff", {With::named, {"two.citcat@1"}}},
      {"compare", {With::named, {"log.txt"}}},
      {"session", {With::named, {}}},
      {"record", {With::no_care, {}}},
      {"import", {With::no_care, {}}},
      {"merge", {With::no_care, {}}},
      {"rep", {With::no_care, {}}},
      {"convert", {With::no_care, {}}},
      {"lint", {With::no_care, {}}},
      {"dap", {With::no_care, {}}},  // one session: a thread each
      {"demo", {With::no_care, {}}},
      {"help", {With::no_care, {}}},
  };
  return kRows;
}

class CommandTable : public ::testing::Test {
 protected:
  void SetUp() override {
    const MadeMachine made = made_machine({2, 5});
    write_file((folder_.path() / "bus.bin").string(), made.headerless());
    for (int p = 0; p < 2; ++p)
      write_file((folder_.path() / ("side." + std::to_string(p) + ".csv")).string(),
                 made.internal[p]);
    const ProcessResult result =
        run({"import", "bus.bin", "--cpu", "p6", "--internal", "0=side.0.csv", "--internal",
             "1=side.1.csv", "-o", "two.citcat", "-q"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    write_file((folder_.path() / "log.txt").string(), "0x00000000: cli\n");
  }
  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }
  ProcessResult run(const std::string& command, const std::string& recording,
                    std::vector<std::string> more) const {
    more.insert(more.begin(), {command, recording});
    return run(more);
  }
  bool exists(const std::string& name) const {
    return std::filesystem::exists(folder_.path() / name);
  }
  void make_folder(const std::string& name) const {
    std::filesystem::create_directory(folder_.path() / name);
  }
  std::string content(const std::string& name) const { return read_file(folder_.path() / name); }

 private:
  citcat::testing::TemporaryFolder folder_;
};

TEST_F(CommandTable, HasEveryCommand) {
  std::set<std::string> known;
  for (const auto& [name, row] : command_rows()) known.insert(name);
  const Json help = Json::parse(run({"help", "--json"}).out);
  for (const Json& command : help.at("commands")) {
    const auto name = command.at("command").get<std::string>();
    EXPECT_TRUE(known.contains(name)) << name << ": what does it do with several processors?";
  }
}

TEST_F(CommandTable, NothingIsDoneInSilenceWithProcessor0) {
  for (const auto& [command, row] : command_rows()) {
    SCOPED_TRACE(command);
    if (row.with == With::no_care) continue;
    const ProcessResult result = run(command, "two.citcat", row.arguments);
    if (row.with == With::named) {
      EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
      EXPECT_THAT(result.err, HasSubstr("two.citcat@0 to two.citcat@1"));
      continue;
    }
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    if (row.with != With::each) continue;
    EXPECT_THAT(result.out, HasSubstr("processor 0\n"));
    EXPECT_THAT(result.out, HasSubstr("processor 1\n"));
  }
}

TEST_F(CommandTable, EachSaysOneLineOfJson) {
  for (const auto& [command, row] : command_rows()) {
    if (row.with != With::each) continue;
    SCOPED_TRACE(command);
    std::vector<std::string> arguments = row.arguments;
    arguments.emplace_back("--json");
    const ProcessResult result = run(command, "two.citcat", arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const Json json = Json::parse(result.out);
    ASSERT_EQ(json.at("processors").size(), 2u) << json.dump(1);
    for (int p = 0; p < 2; ++p) EXPECT_EQ(json.at("processors").at(p).at("processor"), p);
  }
}

TEST_F(CommandTable, OneThatIsNamedIsTheOneThatIsMeant) {
  const Json info = Json::parse(run({"info", "two.citcat", "--json"}).out);
  for (int p = 0; p < 2; ++p) {
    const auto count = info.at("processors").at(p).at("instructions").get<std::uint64_t>();
    for (const bool by_option : {false, true}) {
      std::vector<std::string> arguments{"count"};
      arguments.push_back(by_option ? "two.citcat" : "two.citcat@" + std::to_string(p));
      arguments.emplace_back("--json");
      if (by_option) arguments.insert(arguments.end(), {"--processor", std::to_string(p)});
      const Json json = Json::parse(run(arguments).out);
      EXPECT_EQ(json.at("instructions"), count) << json.dump(1);
    }
  }
}

TEST_F(CommandTable, EachWritesAFileOfItsOwn) {
  for (const std::string ending : {"kt", "champsim", "perfetto-trace", "callgrind", "drcov"}) {
    SCOPED_TRACE(ending);
    const ProcessResult result = run({"replay", "two.citcat", "-o", "run." + ending, "-q"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const std::string number : {"0", "1"}) {
      const std::string name = "run." + number + "." + ending;
      ASSERT_TRUE(exists(name)) << name;
      const std::string alone = "alone." + ending;
      EXPECT_EQ(run({"replay", "two.citcat@" + number, "-o", alone, "-q"}).exit_code, 0);
      if (ending != "drcov") {
        EXPECT_EQ(content(name), content(alone));
      }
    }
    EXPECT_FALSE(exists("run." + ending));
  }
  EXPECT_EQ(run({"replay", "two.citcat", "-o", "run.drmemtrace", "-q"}).exit_code, 0);
  EXPECT_TRUE(exists("run.drmemtrace/trace/drmemtrace.core.000001.trace.zip"));
  EXPECT_FALSE(exists("run.0.drmemtrace"));
  EXPECT_EQ(run({"replay", "two.citcat", "-o", "-"}).exit_code, 2);
}

TEST_F(CommandTable, SideBySideIsWhatOneAfterTheOtherIs) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"analyze", "two.citcat", "--tool", "count"},
        {"analyze", "two.citcat", "--tool", "count", "--json"},
        {"replay", "two.citcat", "--from-start", "-o", "side.kt"},
        {"replay", "two.citcat", "-o", "side.champsim"}}) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const ProcessResult serial = run(command);
    std::map<std::string, std::string> files;
    for (const char* const name : {"side.0.kt", "side.1.kt", "side.0.champsim", "side.1.champsim"})
      if (exists(name)) files[name] = content(name);
    std::vector<std::string> both = command;
    both.insert(both.end(), {"--jobs", "2"});
    const ProcessResult parallel = run(both);
    EXPECT_EQ(parallel.exit_code, serial.exit_code) << parallel.err;
    if (command[0] == "analyze") {
      EXPECT_EQ(parallel.out, serial.out);
    }
    EXPECT_THAT(parallel.out, HasSubstr(command.back() == "--json" ? "processors" : "processor 1"));
    for (const auto& [name, bytes] : files) EXPECT_EQ(content(name), bytes) << name;
  }
}

TEST_F(CommandTable, WhatFailsSideBySideIsSaid) {
  make_folder("folder.1.kt");
  const ProcessResult result = run({"replay", "two.citcat", "-o", "folder.kt", "--jobs", "2"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("folder.1.kt"));
}

TEST_F(CommandTable, APlaceOfNoInstructionIsRefused) {
  for (const std::string place : {"1:", "0:", ":1", "x:1"}) {
    SCOPED_TRACE(place);
    const ProcessResult result = run({"cat", "two.citcat", "--from", place});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("P:N or P:N+K"));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CommandTable, PositionsNameTheProcessorWhereverOneIsAsked) {
  const ProcessResult why = run({"why", "two.citcat", "--at", "1:3", "--register", "eax"});
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_EQ(why.out, run({"why", "two.citcat@1", "--at", "3", "--register", "eax"}).out);
  EXPECT_EQ(
      run({"view", "two.citcat", "--export", "a.html", "--from", "1:0", "--to", "1:5"}).exit_code,
      0);
  EXPECT_EQ(run({"view", "two.citcat@1", "--export", "b.html", "--to", "5"}).exit_code, 0);
  EXPECT_EQ(content("a.html"), content("b.html"));
}

TEST_F(CommandTable, WhatVerifySaysOfOneItSaysOfAll) {
  const ProcessResult all = run({"verify", "two.citcat", "--account"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  const std::string one = run({"verify", "two.citcat@1", "--account"}).out;
  const std::string account = one.substr(one.rfind("\n  ", one.size() - 2) + 1);
  EXPECT_THAT(all.out, HasSubstr(account));
}

TEST_F(CommandTable, ToolsOfAllSayWhatTheyAre) {
  for (const std::string tool : {"sharing", "races"}) {
    const ProcessResult help = run({"analyze", "--tool", tool + ":help"});
    EXPECT_EQ(help.exit_code, 0) << help.err;
    EXPECT_THAT(help.out, HasSubstr(tool + ":"));
    EXPECT_EQ(
        run({"analyze", "two.citcat", "--tool", tool, "--sample", "every 10 for 5"}).exit_code, 2);
  }
}

TEST_F(CommandTable, AFileIsCheckedAsAWhole) {
  for (const std::string command : {"check", "repair"}) {
    const ProcessResult result = run({command, "two.citcat@1"});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("all recordings of a file"));
  }
}

TEST_F(CommandTable, WithoutEvidenceEachStillRunsAsItWasVerified) {
  ASSERT_EQ(run({"slim", "two.citcat", "-o", "slim.citcat", "-q"}).exit_code, 0);
  const ProcessResult result = run({"verify", "slim.citcat", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("verdict"), "match");
  EXPECT_TRUE(json.at("shared_bus").is_null());
  for (int p = 0; p < 2; ++p) {
    const std::string number = "@" + std::to_string(p);
    EXPECT_EQ(json.at("processors").at(p).at("evidence"), "digests");
    EXPECT_EQ(run({"cat", "slim.citcat" + number}).out, run({"cat", "two.citcat" + number}).out);
  }
  for (const std::string tool : {"sharing", "races"}) {
    const ProcessResult asked = run({"analyze", "slim.citcat", "--tool", tool});
    EXPECT_EQ(asked.exit_code, 2);
    EXPECT_THAT(asked.err, HasSubstr("digests in place of the evidence"));
  }
}

TEST_F(CommandTable, ByProcessorIsOfSeveral) {
  EXPECT_EQ(run({"count", "two.citcat", "--by", "processor"}).exit_code, 0);
  EXPECT_EQ(run({"count", "two.citcat", "--by", "processor,level"}).exit_code, 0);
  const ProcessResult one = run({"count", "two.citcat@0", "--by", "processor"});
  EXPECT_EQ(one.exit_code, 2);
  EXPECT_THAT(one.err, HasSubstr("--by processor"));
  EXPECT_EQ(run({"count", "two.citcat", "--to", "5"}).exit_code, 2);
  EXPECT_EQ(run({"count", "two.citcat", "--to", "1:5"}).exit_code, 0);
}

}  // namespace
}  // namespace citcat::test
