// Metrics of a recording, as somebody would ask for them: their figures are those of the tools that
// count the same, and those of a session are those of the whole run told from there to there.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/process.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kCapture = CITCAT_SOURCE_DIR "/samples/linux/start.bin.zst";
constexpr const char* kValues = CITCAT_SOURCE_DIR "/samples/linux/start.side.csv";
constexpr const char* kFigures = CITCAT_SOURCE_DIR "/tests/unit/tools/mdl/figures.mdl";
constexpr const char* kPaper = CITCAT_SOURCE_DIR "/tests/unit/tools/mdl/paper.mdl";
constexpr const char* kMachine = CITCAT_SOURCE_DIR "/tests/unit/tools/mdl/machine.mdl";

using Values = std::map<std::string, std::uint64_t>;

class Metrics : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProcessResult import = run_citcat(
        {"import", kCapture, "--internal", kValues, "-o", "linux.citcat", "-q"}, folder_->path());
    ASSERT_EQ(import.exit_code, 0) << import.err;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  /// The tools' results; "null" keeps the keys apart where one tool alone is asked.
  static Json ask(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"analyze", "linux.citcat", "--json", "--tool", "null"});
    const ProcessResult r = run_citcat(arguments, folder_->path());
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return Json::parse(r.out).at("tools");
  }
  /// By "METRIC@FOCUS".
  static Values values(const Json& table) {
    Values all;
    for (const Json& row : table) {
      all[row.at("metric").get<std::string>() + "@" + row.at("focus").get<std::string>()] =
          row.at("value").get<std::uint64_t>();
    }
    return all;
  }
  static std::uint64_t event_count(const Json& tools, const std::string& name) {
    for (const Json& row : tools.at("events").at("events")) {
      if (row.at("event") == name) return row.at("count").get<std::uint64_t>();
    }
    return 0;
  }

  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(Metrics, CountWhatTheToolsCount) {
  const Json tools = ask({"--mdl",    kMachine,
                          "--metric", "executions",
                          "--metric", "branches",
                          "--metric", "cpu",
                          "--metric", "switches",
                          "--metric", "dmaBytes",
                          "--metric", "interrupts@/Interrupt/30",
                          "--metric", "systemCalls@/Syscall/*",
                          "--metric", "ports",
                          "--metric", "results",
                          "--metric", "calls",
                          "--metric", "exceptions",
                          "--tool",   "count",
                          "--tool",   "branches",
                          "--tool",   "syscalls",
                          "--tool",   "events",
                          "--tool",   "func:procedures=100000"});
  Values found = values(tools.at("mdl").at("metrics"));
  EXPECT_EQ(found["executions@/"], tools.at("count").at("executions"));
  EXPECT_EQ(found["cpu@/"], tools.at("count").at("instructions"));
  EXPECT_EQ(found["interrupts@/Interrupt/30"], event_count(tools, "interrupt 30"));
  EXPECT_EQ(found["exceptions@/"], event_count(tools, "exception 0e"));
  std::uint64_t calls = 0;
  for (const Json& row : tools.at("syscalls").at("by_name")) {
    EXPECT_EQ(found["systemCalls@/Syscall/" + row.at("name").get<std::string>()], row.at("calls"));
    calls += row.at("calls").get<std::uint64_t>();
  }
  EXPECT_GT(calls, 3u);
  // Results of write and read, each 1 byte.
  EXPECT_EQ(found["results@/"], 2u);
  std::uint64_t called = 0;
  for (const Json& row : tools.at("func").at("procedures_by_instructions")) {
    called += row.at("calls").get<std::uint64_t>();
  }
  EXPECT_EQ(found["calls@/"], called);
}

TEST_F(Metrics, OfEachProcedureAreThoseOfFunc) {
  const Json tools =
      ask({"--metric", "cpuExclusive@/Code/*/*", "--metric", "procedureCalls@/Code/*/c42ac*",
           "--metric", "cpu@/Code/*/*", "--tool", "func:procedures=100000"});
  Values found = values(tools.at("mdl").at("metrics"));
  std::size_t compared = 0, open = 0;
  for (const Json& row : tools.at("func").at("procedures_by_instructions")) {
    const std::string focus = "@/Code/" + row.at("module").get<std::string>() + "/" +
                              row.at("procedure").get<std::string>();
    EXPECT_EQ(found["cpuExclusive" + focus], row.at("own")) << focus;
    // func leaves out calls that have not ended.
    const auto ended = row.at("with_callees").get<std::uint64_t>();
    EXPECT_GE(found["cpu" + focus], ended) << focus;
    if (found["cpu" + focus] != ended) ++open;
    ++compared;
  }
  EXPECT_GT(compared, 600u);
  EXPECT_LT(open, 30u);
}

TEST_F(Metrics, OfContextsAddUpToTheWhole) {
  const Json tools =
      ask({"--metric", "cpu", "--metric", "cpu@/Process/*", "--metric", "cpu@/Level/*", "--metric",
           "cpu@/Level/0,/Process/*", "--metric", "cpu@/Level/3,/Process/*"});
  std::map<std::string, std::uint64_t> sums;
  std::uint64_t whole = 0;
  for (const auto& [key, value] : values(tools.at("mdl").at("metrics"))) {
    if (key == "cpu@/") whole = value;
    if (key.starts_with("cpu@/Process/")) sums["process"] += value;
    if (key.starts_with("cpu@/Level/")) {
      sums[key.find(",") == std::string::npos ? "level" : "both"] += value;
    }
  }
  EXPECT_GT(whole, 100000u);
  EXPECT_EQ(sums, (std::map<std::string, std::uint64_t>{
                      {"process", whole}, {"level", whole}, {"both", whole}}));
}

TEST_F(Metrics, OfEachKindOfDefinitionAgreeWithFunc) {
  const Json tools =
      ask({"--mdl", kFigures, "--metric", "msgs", "--metric", "msgs@/Code/*/c491bc40", "--metric",
           "cpuTime@/Code/*/c491bc40", "--tool", "func:procedures=100000"});
  Values found = values(tools.at("mdl").at("metrics"));
  Values calls;
  for (const Json& row : tools.at("func").at("procedures_by_instructions")) {
    calls[row.at("procedure")] = row.at("calls").get<std::uint64_t>();
  }
  ASSERT_GT(calls["c491bc40"], 0u);
  EXPECT_EQ(found["msgs@/"], calls["c491bc40"] + calls["c42665d0"]);
  // Constrained to calls within a procedure of the list: its own, and what it called of the other.
  EXPECT_GE(found["msgs@/Code//c491bc40"], calls["c491bc40"]);
  EXPECT_LE(found["msgs@/Code//c491bc40"], found["msgs@/"]);
  EXPECT_GT(found["cpuTime@/Code//c491bc40"], 0u);
}

TEST_F(Metrics, OfThePaperCountWhatThoseOfTheLaterDialectDo) {
  const std::string procedure = "@/Code/*/c491bc40";
  const Json tools =
      ask({"--mdl", kPaper, "--mdl", kFigures, "--metric", "msgs", "--metric", "messages",
           "--metric", "messagesAsBefore", "--metric", "oneOfThem", "--metric", "msgs" + procedure,
           "--metric", "messages" + procedure, "--tool", "func:procedures=100000"});
  Values found = values(tools.at("mdl").at("metrics"));
  ASSERT_GT(found["msgs@/"], 0u);
  EXPECT_EQ(found["messages@/"], found["msgs@/"]);
  EXPECT_EQ(found["messagesAsBefore@/"], found["msgs@/"]);
  EXPECT_EQ(found["messages@/Code//c491bc40"], found["msgs@/Code//c491bc40"]);
  for (const Json& row : tools.at("func").at("procedures_by_instructions")) {
    if (row.at("procedure") != "c491bc40") continue;
    EXPECT_EQ(found["oneOfThem@/"], row.at("calls"));
  }
}

/// Values that accesses had, as `watch` lists them, are what code reads of memory behind them.
TEST_F(Metrics, ReadTheMemoryOfTheMachine) {
  const Json watched = ask({"--to", "40000", "--tool", "watch:at=c0000000-ffffffff,most=100000"});
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> sums;  // writes, and their values
  for (const Json& access : watched.at("watch").at("list")) {
    if (access.at("direction") != "write" || access.at("size") != 4) continue;
    auto& [count, sum] = sums[access.at("address")];
    ++count;
    const auto value = access.at("value").get<std::string>();
    sum += static_cast<std::int32_t>(std::stoul(value, nullptr, 16));
  }
  const auto most = std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  ASSERT_NE(most, sums.end());
  ASSERT_GT(most->second.first, 100u);
  const std::string here =
      "append preInsn $reference.write (* if ($arg[0] == 0x" + most->first + " && $arg[1] == 4) ";
  write_file(folder_->path() / "read.mdl", "metric byAddress { units u; base is counter { " + here +
                                               "byAddress += readAddress($arg[0]); *) } }\n"
                                               "metric byName { units u; base is counter { " +
                                               here +
                                               "byName += readSymbol(\"here\"); *) } }\n"
                                               "metric unknown { units u; base is counter { " +
                                               here +
                                               "unknown = readAddress(1); *) } }\n"
                                               "metric lost { units u; base is counter { " +
                                               here + "lost = readSymbol(\"nowhere\"); *) } }\n");
  write_file(folder_->path() / "map", "c4000000 T code\n" + most->first + " D here\n");
  const Json tools = ask({"--to", "40000", "--mdl", "read.mdl", "--symbols", "map", "--metric",
                          "byAddress", "--metric", "byName", "--metric", "unknown"});
  for (const Json& row : tools.at("mdl").at("metrics")) {
    const bool unknown = row.at("metric") == "unknown";
    EXPECT_EQ(row.at("value").get<std::int64_t>(), unknown ? 0 : most->second.second) << row;
    EXPECT_EQ(row.at("unknown"), unknown ? most->second.first : 0) << row;
  }
  const ProcessResult lost = run_citcat(
      {"analyze", "linux.citcat", "--mdl", "read.mdl", "--symbols", "map", "--metric", "lost"},
      folder_->path());
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_NE(lost.err.find("expected the name of a symbol, found \"nowhere\""), std::string::npos)
      << lost.err;
}

TEST_F(Metrics, OfASessionAreThoseOfTheRunFromThereToThere) {
  // The first and the last place are those of an interrupt.
  const std::vector<std::string> metrics{"cpu@/Code/*/*", "interrupts@/Interrupt/*",
                                         "dmaBytes@/Process/*", "systemCalls@/Syscall/*"};
  for (const auto& [from, to] : {std::pair{"41024", "100115"}, {"333", "41024"}}) {
    std::string commands = std::string("go ") + from + "\n";
    std::vector<std::string> arguments{"--from", from, "--to", to};
    for (const std::string& m : metrics) {
      commands += "add " + m + "\n";
      arguments.insert(arguments.end(), {"--metric", m});
    }
    commands += std::string("go ") + to + "\n";
    for (const std::string& m : metrics) commands += "remove " + m + "\n";
    commands += "go +1000\nreport\n";
    write_file(folder_->path() / "commands.txt", commands);
    const ProcessResult session =
        run_shell("\"$CITCAT\" session linux.citcat --json < commands.txt", folder_->path());
    ASSERT_EQ(session.exit_code, 0) << session.err;
    const Values whole = values(ask(arguments).at("mdl").at("metrics"));
    EXPECT_GT(whole.size(), 50u);
    EXPECT_EQ(values(Json::parse(session.out).at("metrics")), whole) << from;
  }
}

TEST_F(Metrics, AreExplainedBeforehand) {
  const ProcessResult r = run_citcat({"analyze", "linux.citcat", "--mdl", kFigures, "--metric",
                                      "msgs@/Code/vmlinux/schedule", "--explain", "--json"},
                                     folder_->path());
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const Json points = Json::parse(r.out).at("points");
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].at("code"), "constraint");
  EXPECT_EQ(points[2].at("point"), "/Code/*/c491bc40 /Code/*/c42665d0 .entry");
  // One look at the constraints, one step for ++.
  EXPECT_EQ(points[2].at("cost"), 2);
}

TEST_F(Metrics, ThatThereAreNotAreRefused) {
  const auto status = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"analyze", "linux.citcat"});
    return run_citcat(arguments, folder_->path()).exit_code;
  };
  constexpr int kUsage = 2, kBadInput = 3;
  EXPECT_EQ(status({"--metric", "nothing"}), kUsage);
  EXPECT_EQ(status({"--metric", "dmaBytes@/Code/a"}), kUsage);
  EXPECT_EQ(status({"--mdl", kFigures}), kUsage);
  EXPECT_EQ(status({"--explain"}), kUsage);
  write_file(folder_->path() / "bad.mdl", "metric m {\n  bass is counter { }\n}\n");
  const ProcessResult r =
      run_citcat({"analyze", "linux.citcat", "--mdl", "bad.mdl", "--metric", "m"}, folder_->path());
  EXPECT_EQ(r.exit_code, kBadInput);
  EXPECT_EQ(r.err.substr(r.err.find("bad.mdl")),
            "bad.mdl:2:3: expected name, units, aggregateOperator, style, flavor, mode, unitsType, "
            "counter, constraint, base or }, found bass\n    bass is counter { }\n    ^\n");
}

}  // namespace
}  // namespace citcat::testing
