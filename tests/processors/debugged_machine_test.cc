// citcat debug of several processors, driven by the gdb of the system: each is a thread, and they
// move in the order in which the monitor saw them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "golden/dap_client.h"
#include "golden/gdb_script.h"
#include "golden/process.h"
#include "processors/made_machine.h"

namespace citcat::test {
namespace {

using citcat::testing::lines_with;
using citcat::testing::ProcessResult;
using citcat::testing::run_citcat;
using citcat::testing::run_gdb;
using citcat::testing::write_file;

constexpr std::uint8_t kDataReads = 2, kStarts = 19;
/// The loops in which the made processors wait for each other, and what they read there.
constexpr std::uint32_t kLoops[] = {0x1005, 0x2000}, kReadsAt[] = {0x504, 0x500};

class DebuggedMachine : public ::testing::TestWithParam<std::vector<unsigned>> {
 protected:
  void SetUp() override {
    if (std::system("command -v gdb >/dev/null") != 0) GTEST_SKIP() << "no gdb here";
    made_ = made_machine(GetParam());
    write_file((folder_.path() / "bus.bin").string(), made_.headerless());
    std::vector<std::string> arguments{"import", "bus.bin",    "--cpu", "p6",
                                       "-o",     "two.citcat", "-q"};
    for (int p = 0; p < 2; ++p) {
      const std::string name = "side." + std::to_string(p) + ".csv";
      write_file((folder_.path() / name).string(), made_.internal[p]);
      arguments.insert(arguments.end(), {"--internal", std::to_string(p) + "=" + name});
    }
    const ProcessResult result = run_citcat(arguments, folder_.path());
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  std::string gdb(const std::string& script, const std::string& options = "") const {
    return run_gdb("two.citcat " + options, script, folder_.path());
  }
  static int processor(const MadeRecord& r) { return r.place >> 4; }
  static bool is_dump(const MadeRecord& r) { return (r.flags & 16) != 0; }

  /// "THREAD INSTRUCTION" of each time that a processor was at its loop, as the bus shows it.
  std::vector<std::string> rounds() const {
    std::vector<std::string> all;
    for (const MadeRecord& r : made_.records) {
      const int p = processor(r);
      if (r.type != kDataReads || r.address != kReadsAt[p]) continue;
      all.push_back(std::to_string(p + 1) + " " + std::to_string(r.count));
    }
    return all;
  }
  /// Where the other processor stands when one has done `count` instructions, and is not due yet.
  std::uint64_t other_when(int p, std::uint64_t count) const {
    std::uint64_t reached = 0;
    for (const MadeRecord& r : made_.records) {
      if (is_dump(r)) continue;
      if (processor(r) == p && r.count >= count && r.type != kStarts) break;
      if (processor(r) != p && r.type != kStarts) reached = r.count + 1;
    }
    return reached;
  }

  const std::filesystem::path& folder() const { return folder_.path(); }

  MadeMachine made_;

 private:
  citcat::testing::TemporaryFolder folder_;
};

/// The same as an editor sees it.
class EditedMachine : public DebuggedMachine {
 protected:
  using Json = citcat::testing::DapClient::Json;
  citcat::testing::DapClient editor(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments{"two.citcat", "--unchecked"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return {arguments, folder()};
  }
  static Json begin(citcat::testing::DapClient& editor) {
    editor.body("initialize", {{"adapterID", "citcat"}});
    editor.body("launch", Json::object());
    editor.event("initialized");
    Json all = Json::array();
    for (const std::uint32_t loop : kLoops)
      all.push_back({{"instructionReference", fmt::format("{:#x}", loop)}});
    editor.body("setInstructionBreakpoints", {{"breakpoints", all}});
    editor.body("configurationDone");
    return editor.event("stopped");
  }
  /// "THREAD INSTRUCTION", as rounds() says it.
  static std::string place(citcat::testing::DapClient& editor, int thread) {
    const Json frame =
        editor.body("stackTrace", {{"threadId", thread}, {"levels", 1}}).at("stackFrames").at(0);
    const Json scopes = editor.body("scopes", {{"frameId", frame.at("id")}}).at("scopes");
    for (const Json& each : scopes) {
      const Json variables =
          editor.body("variables", {{"variablesReference", each.at("variablesReference")}})
              .at("variables");
      for (const Json& v : variables) {
        if (v.at("name") == "position")
          return std::to_string(thread) + " " + v.at("value").get<std::string>();
      }
    }
    return "nowhere";
  }
};

TEST_P(EditedMachine, MeetsBreakpointsOfAllInTheOrderOfTheBusAndBack) {
  citcat::testing::DapClient client = editor();
  begin(client);
  std::vector<std::string> on, back;
  const std::vector<std::string> expected = rounds();
  for (std::size_t i = 0; i < expected.size(); ++i)
    on.push_back(place(client, client.move("continue").at("threadId").get<int>()));
  EXPECT_EQ(on, expected);
  EXPECT_EQ(client.move("continue").at("reason"), "end");
  for (std::size_t i = 0; i < expected.size(); ++i)
    back.insert(back.begin(),
                place(client, client.move("reverseContinue").at("threadId").get<int>()));
  EXPECT_EQ(back, expected);
}

/// One write is one stop, of the processor that makes it: the other one notices it, and goes on.
TEST_P(EditedMachine, AWriteStopsTheProcessorThatMakesIt) {
  constexpr std::uint8_t kDataWrites = 3;
  std::vector<std::string> expected;
  for (const MadeRecord& r : made_.records) {
    if (r.type != kDataWrites || is_dump(r)) continue;
    if (r.address < 0x500 || r.address >= 0x50c) continue;
    expected.push_back(std::to_string(processor(r) + 1) + " " + std::to_string(r.count + 1));
  }
  ASSERT_GE(expected.size(), 2u);
  citcat::testing::DapClient client = editor();
  begin(client);
  client.body("setInstructionBreakpoints", {{"breakpoints", Json::array()}});
  client.body("setDataBreakpoints",
              {{"breakpoints", Json::array({{{"dataId", "0x500/12"}, {"accessType", "write"}}})}});
  std::vector<std::string> on;
  for (;;) {
    const Json stopped = client.move("continue");
    if (stopped.at("reason") != "data breakpoint") break;
    on.push_back(place(client, stopped.at("threadId").get<int>()));
  }
  EXPECT_EQ(on, expected);
  // Back, before each of them.
  std::vector<std::string> back;
  for (;;) {
    const Json stopped = client.move("reverseContinue");
    if (stopped.at("reason") != "data breakpoint") break;
    back.insert(back.begin(), place(client, stopped.at("threadId").get<int>()));
  }
  ASSERT_EQ(back.size(), expected.size());
}

TEST_P(EditedMachine, OthersFollowOneThatStepsUnlessItMovesAlone) {
  citcat::testing::DapClient client = editor({"--at", "1:3"});
  EXPECT_EQ(begin(client).at("threadId"), 2);
  EXPECT_EQ(place(client, 2), "2 3");
  EXPECT_EQ(place(client, 1), "1 " + std::to_string(other_when(1, 3)));
  const std::string before = place(client, 1);
  client.move("stepIn", {{"threadId", 2}, {"singleThread", true}, {"granularity", "instruction"}});
  EXPECT_EQ(place(client, 2), "2 4");
  EXPECT_EQ(place(client, 1), before);
  client.move("stepIn", {{"threadId", 2}, {"granularity", "instruction"}});
  EXPECT_EQ(place(client, 2), "2 5");
  EXPECT_EQ(place(client, 1), "1 " + std::to_string(other_when(1, 5)));
}

TEST_P(DebuggedMachine, MeetsBreakpointsOfAllInTheOrderOfTheBusAndBack) {
  const std::vector<std::string> expected = rounds();
  ASSERT_GT(expected.size(), 3u);
  const std::string count = std::to_string(expected.size());
  const std::string output = gdb("break *0x1005\nbreak *0x2000\nset $i = 0\nwhile $i < " + count +
                                 "\n  continue\n  printf \"hit %d %d\\n\", $_thread, $instruction\n"
                                 "  set $i = $i + 1\nend\ncontinue\nset $i = 0\nwhile $i < " +
                                 count +
                                 "\n  reverse-continue\n"
                                 "  printf \"back %d %d\\n\", $_thread, $instruction\n"
                                 "  set $i = $i + 1\nend\nreverse-continue\n");
  EXPECT_EQ(lines_with(output, "hit "), expected) << output;
  std::vector<std::string> back = lines_with(output, "back ");
  std::reverse(back.begin(), back.end());
  EXPECT_EQ(back, expected) << output;
  EXPECT_NE(output.find("No more reverse-execution history"), std::string::npos) << output;
}

TEST_P(DebuggedMachine, ABreakpointOfOneThreadIsMetByItAlone) {
  std::vector<std::string> expected;
  for (const std::string& round : rounds())
    if (round[0] == '2') expected.push_back(round);
  const std::string output =
      gdb("break *0x1005 thread 2\nbreak *0x2000 thread 2\nset $i = 0\nwhile $i < " +
          std::to_string(expected.size()) +
          "\n  continue\n  printf \"hit %d %d\\n\", $_thread, $instruction\n"
          "  set $i = $i + 1\nend\n");
  EXPECT_EQ(lines_with(output, "hit "), expected) << output;
}

TEST_P(DebuggedMachine, AStepOfOneMovesTheOtherAsTheBusShowsIt) {
  constexpr int kSteps = 12;
  const std::string look =
      "  printf \"at %d\\n\", $instruction\n"
      "  thread apply 2 -s printf \"other %d\\n\", $instruction\n";
  const std::string output =
      gdb("set $i = 0\nwhile $i < " + std::to_string(kSteps) + "\n  stepi\n" + look +
          "  set $i = $i + 1\nend\nset $i = 0\nwhile $i < " + std::to_string(kSteps - 1) +
          "\n  reverse-stepi\n" + look + "  set $i = $i + 1\nend\n");
  const std::vector<std::string> at = lines_with(output, "at "),
                                 other = lines_with(output, "other ");
  ASSERT_EQ(at.size(), 2u * kSteps - 1) << output;
  ASSERT_EQ(other.size(), at.size()) << output;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_EQ(at[i], std::to_string(i + 1)) << output;
    EXPECT_EQ(other[i], std::to_string(other_when(0, i))) << i << output;
  }
  for (int i = 1; i < kSteps; ++i) {
    EXPECT_EQ(at[kSteps + i - 1], std::to_string(kSteps - i)) << output;
    EXPECT_EQ(other[kSteps + i - 1], std::to_string(other_when(0, kSteps - i))) << i << output;
  }
}

/// gdb names no thread when it steps back: the selected one is meant.
TEST_P(DebuggedMachine, StepsTheSelectedThreadBack) {
  const std::string look = "printf \"at %d %d\\n\", $_thread, $instruction\n";
  const std::string output = gdb("thread 2\nreverse-stepi\n" + look + "reverse-stepi\n" + look +
                                     "thread 1\nthread 2\nreverse-stepi\n" + look,
                                 "--at 1:5");
  EXPECT_EQ(lines_with(output, "at "), (std::vector<std::string>{"2 4", "2 3", "2 2"})) << output;
}

TEST_P(DebuggedMachine, APositionOfOneIsAPlaceForAll) {
  const std::string place = "printf \"at %d %d\\n\", $_thread, $instruction\n";
  const std::string output =
      gdb(place + "thread 1\n" + place + "monitor seek 0:4\n" + place + "thread 2\n" + place,
          "--at 1:3");
  EXPECT_EQ(lines_with(output, "at "),
            (std::vector<std::string>{"2 3", "1 " + std::to_string(other_when(1, 3)), "1 4",
                                      "2 " + std::to_string(other_when(0, 4))}))
      << output;
}

INSTANTIATE_TEST_SUITE_P(, EditedMachine,
                         ::testing::Values(std::vector<unsigned>{1, 1},
                                           std::vector<unsigned>{3, 1, 7}));
INSTANTIATE_TEST_SUITE_P(, DebuggedMachine,
                         ::testing::Values(std::vector<unsigned>{1, 1},
                                           std::vector<unsigned>{3, 1, 7}));

}  // namespace
}  // namespace citcat::test
