// citcat dap, driven over pipes as an editor does it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/dap_client.h"
#include "golden/golden_files.h"
#include "unit/debugger/watched_program.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;
using Program = test::WatchedProgram;

std::string hex(std::uint64_t n) {
  std::ostringstream text;
  text << "0x" << std::hex << n;
  return text.str();
}

class DapCommand : public CitcatTest {
 protected:
  void SetUp() override { Program().store(file("watched.citcat").string()); }
  DapClient client(const std::vector<std::string>& arguments) const {
    return {arguments, file("")};
  }
  /// Up to where an editor has set its breakpoints.
  static void begin(DapClient& editor, const Json& launch = Json::object()) {
    editor.body("initialize", {{"adapterID", "citcat"}, {"linesStartAt1", true}});
    editor.body("launch", launch);
    editor.event("initialized");
  }
  static void run(DapClient& editor, const Json& launch = Json::object()) {
    begin(editor, launch);
    editor.body("configurationDone");
    EXPECT_EQ(editor.event("stopped").at("reason"), "entry");
  }
  static Json frame(DapClient& editor, int thread = 1) {
    return editor.body("stackTrace", {{"threadId", thread}, {"levels", 1}}).at("stackFrames").at(0);
  }
  static std::string pc(DapClient& editor) {
    return frame(editor).at("instructionPointerReference").get<std::string>();
  }
  static std::string variable(DapClient& editor, const char* scope, const char* name) {
    const Json scopes = editor.body("scopes", {{"frameId", frame(editor).at("id")}}).at("scopes");
    for (const Json& each : scopes) {
      if (each.at("name") != scope) continue;
      const Json variables =
          editor.body("variables", {{"variablesReference", each.at("variablesReference")}})
              .at("variables");
      for (const Json& v : variables) {
        if (v.at("name") == name) return v.at("value").get<std::string>();
      }
    }
    return "none";
  }
  static Json instruction_breakpoints(std::initializer_list<std::uint64_t> addresses) {
    Json all = Json::array();
    for (const std::uint64_t a : addresses) all.push_back({{"instructionReference", hex(a)}});
    return {{"breakpoints", all}};
  }
  /// The program with lines, as GNU as makes it of the same bytes; false where there is none.
  bool assemble() const {
    write_file(file("watched.s"), Program::source());
    return run_shell(
               "as --32 -g watched.s -o watched.o && "
               "ld -m elf_i386 -Ttext 0x7c00 watched.o -o watched.elf",
               file(""))
               .exit_code == 0;
  }
  /// The line of the source that begins with `text`, from 1 on.
  static int line_of(const std::string& text) {
    std::istringstream in(Program::source());
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      if (line.starts_with(text)) return number;
    }
    return 0;
  }
};

TEST_F(DapCommand, StepsThroughTheSameInstructionsForwardsAndBack) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  run(editor);
  std::vector<std::string> forwards, back;
  for (int i = 0; i < 25; ++i) {
    forwards.push_back(pc(editor) + " " + variable(editor, "Registers", "ecx"));
    editor.move("stepIn", {{"granularity", "instruction"}});
  }
  for (int i = 0; i < 25; ++i) {
    editor.move("stepBack", {{"granularity", "instruction"}});
    back.insert(back.begin(), pc(editor) + " " + variable(editor, "Registers", "ecx"));
  }
  EXPECT_EQ(forwards, back);
  EXPECT_EQ(forwards.front().substr(0, 6), hex(Program::kBegin));
  EXPECT_EQ(editor.move("stepBack").at("reason"), "beginning");
}

TEST_F(DapCommand, BreakpointsStopInBothDirections) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  begin(editor);
  const Json set = editor.body("setInstructionBreakpoints",
                               instruction_breakpoints({Program::kStore, Program::kFunction}));
  const Json in_loop = set.at("breakpoints").at(0).at("id");
  editor.body("configurationDone");
  editor.event("stopped");
  for (int i = 0; i < 5; ++i) {
    const Json stop = editor.move("continue");
    EXPECT_EQ(stop.at("reason"), "instruction breakpoint");
    EXPECT_EQ(stop.at("hitBreakpointIds"), Json::array({in_loop}));
    EXPECT_EQ(pc(editor), hex(Program::kStore));
    EXPECT_EQ(variable(editor, "Registers", "ecx"), "0x0000000" + std::to_string(5 - i));
  }
  editor.move("continue");
  EXPECT_EQ(pc(editor), hex(Program::kFunction));
  EXPECT_EQ(editor.move("continue").at("reason"), "end");
  editor.move("reverseContinue");
  EXPECT_EQ(pc(editor), hex(Program::kFunction));
  editor.move("reverseContinue");
  EXPECT_EQ(variable(editor, "Registers", "ecx"), "0x00000001");
}

TEST_F(DapCommand, DataBreakpointsFindWhoStored) {
  DapClient editor = client({"watched.citcat", "--unchecked", "--at", "end"});
  begin(editor);
  const Json info = editor.body(
      "dataBreakpointInfo", {{"name", hex(Program::kCount)}, {"asAddress", true}, {"bytes", 4}});
  editor.body(
      "setDataBreakpoints",
      {{"breakpoints", Json::array({{{"dataId", info.at("dataId")}, {"accessType", "write"}}})}});
  editor.body("configurationDone");
  editor.event("stopped");
  EXPECT_EQ(editor.move("reverseContinue").at("reason"), "data breakpoint");
  EXPECT_EQ(pc(editor), hex(Program::kHandler));
  editor.move("reverseContinue");
  EXPECT_EQ(pc(editor), hex(Program::kStore));
}

TEST_F(DapCommand, ADataBreakpointWhereNothingIsMappedIsNotVerified) {
  import_linux_sample("linux.citcat");
  DapClient editor = client({"linux.citcat", "--unchecked", "--at", "10"});
  begin(editor);
  editor.body("configurationDone");
  editor.event("stopped");
  const auto set = [&](const char* id) {
    return editor.body("setDataBreakpoints", {{"breakpoints", Json::array({{{"dataId", id}}})}})
        .at("breakpoints")
        .at(0);
  };
  EXPECT_EQ(set("0xc1c33a2c/4").at("verified"), true);
  const Json refused = set("0x40000000/4");
  EXPECT_EQ(refused.at("verified"), false);
  EXPECT_NE(refused.at("message").get<std::string>().find("nothing is mapped there"),
            std::string::npos);
}

TEST_F(DapCommand, DataBreakpointsOfExpressionsAreWhereTheValueLies) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  run(editor, {{"recording", "watched.citcat"}});
  const auto watched = [&](const Json& arguments) {
    return editor.body("dataBreakpointInfo", arguments).at("dataId");
  };
  const std::string at = hex(Program::kCount);
  EXPECT_EQ(watched({{"name", "[" + at + "]:2"}}), "0x600/2");
  EXPECT_EQ(watched({{"name", "(*" + at + ")"}, {"bytes", 4}}), "0x600/4");
  EXPECT_EQ(watched({{"name", at}}), "0x600/4");
  EXPECT_EQ(watched({{"name", at + " + 4"}, {"bytes", 1}}), "0x604/1");
}

TEST_F(DapCommand, StepsOverCallsAndOutOfThem) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  begin(editor);
  editor.body("setInstructionBreakpoints", instruction_breakpoints({Program::kCall}));
  editor.body("configurationDone");
  editor.event("stopped");
  editor.move("continue");
  editor.move("next");
  EXPECT_EQ(pc(editor), hex(Program::kCall + 5));
  editor.move("stepBack", {{"granularity", "instruction"}});
  EXPECT_EQ(pc(editor), hex(Program::kFunction + 2));
  const Json levels = editor.body("stackTrace", {{"threadId", 1}}).at("stackFrames");
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_EQ(levels.at(1).at("instructionPointerReference"), hex(Program::kCall));
  editor.move("stepOut");
  EXPECT_EQ(pc(editor), hex(Program::kCall + 5));
  editor.move("stepBack", {{"granularity", "instruction"}});
  editor.body("restartFrame", {{"frameId", frame(editor).at("id")}});
  editor.event("stopped");
  EXPECT_EQ(pc(editor), hex(Program::kCall));
}

TEST_F(DapCommand, LinesOfSourceAreThoseOfTheProgram) {
  if (!assemble()) GTEST_SKIP() << "no GNU as and ld here";
  DapClient editor = client({"watched.citcat", "--unchecked", "--symbols", "watched.elf"});
  begin(editor);
  const int line = line_of("movl 0x600, %eax");
  const Json set = editor.body(
      "setBreakpoints", {{"source", {{"path", file("watched.s").string()}}},
                         {"breakpoints", Json::array({{{"line", line}}, {{"line", 1000}}})}});
  const Json& first = set.at("breakpoints").at(0);
  if (!first.at("verified").get<bool>()) {
    ASSERT_NE(first.at("message").get<std::string>().find("libdw"), std::string::npos) << first;
    GTEST_SKIP() << "this build reads no source lines";
  }
  EXPECT_FALSE(set.at("breakpoints").at(1).at("verified").get<bool>());
  editor.body("setFunctionBreakpoints", {{"breakpoints", Json::array({{{"name", "function"}}})}});
  editor.body("configurationDone");
  editor.event("stopped");
  EXPECT_EQ(editor.move("continue").at("hitBreakpointIds"), Json::array({first.at("id")}));
  EXPECT_EQ(pc(editor), hex(Program::kBehindLoop));
  EXPECT_EQ(frame(editor).at("line"), line);
  EXPECT_EQ(
      std::filesystem::path(frame(editor).at("source").at("path").get<std::string>()).filename(),
      "watched.s");
  // addr2line reads the same table by other code (binutils).
  const std::string told = run_shell("addr2line -e watched.elf " + pc(editor), file("")).out;
  EXPECT_NE(told.find("watched.s:" + std::to_string(line)), std::string::npos) << told;
  editor.move("next");
  EXPECT_EQ(frame(editor).at("line"), line + 1);
  editor.move("stepBack");
  EXPECT_EQ(frame(editor).at("line"), line);
  // The loop is one line: back to its beginning, before it was entered.
  editor.move("stepBack");
  EXPECT_EQ(frame(editor).at("line"), line - 1);
  EXPECT_EQ(editor.move("continue").at("reason"), "breakpoint");
  EXPECT_EQ(editor.move("continue").at("reason"), "function breakpoint");
  EXPECT_EQ(frame(editor).at("name"), "function");
}

TEST_F(DapCommand, MemoryCodeAndExpressionsAreWhatTheRunHas) {
  DapClient editor = client({"watched.citcat", "--unchecked", "--at", "end"});
  run(editor);
  const Json memory = editor.body(
      "readMemory", {{"memoryReference", hex(Program::kFilled)}, {"offset", 0}, {"count", 4}});
  EXPECT_EQ(memory.at("data"), "RDMiEQ==");  // 44 33 22 11
  const Json beyond =
      editor.body("readMemory", {{"memoryReference", "0x9ff0"}, {"offset", 0}, {"count", 0x20}});
  EXPECT_EQ(beyond.at("unreadableBytes"), 0x10);
  const Json code = editor
                        .body("disassemble", {{"memoryReference", hex(Program::kBehindLoop)},
                                              {"instructionOffset", -1},
                                              {"instructionCount", 3}})
                        .at("instructions");
  ASSERT_EQ(code.size(), 3u);
  EXPECT_EQ(code.at(0).at("instructionBytes"), "e2 f7");
  EXPECT_EQ(code.at(1).at("instructionBytes"), "a1 00 06 00 00");
  EXPECT_EQ(code.at(2).at("instructionBytes"), "0f 11 05 00 07 00 00");
  const auto evaluated = [&](const char* text) {
    return editor.body("evaluate", {{"expression", text}}).at("result").get<std::string>();
  };
  EXPECT_EQ(evaluated("[0x600]"), "0x00000006");
  EXPECT_EQ(evaluated("[0x700 + 0x100 + 4]:2"), "0x3344");
  EXPECT_EQ(evaluated("$eax"), "0x11223344");
  EXPECT_EQ(evaluated("ax"), "0x3344");
  for (const char* const wrong : {"", "[", "1 +", "nobody", "*", "((1)", "0xzz", "[0x600]:3"}) {
    EXPECT_FALSE(editor.ask("evaluate", {{"expression", wrong}}).at("success").get<bool>())
        << wrong;
  }
  const Json where = editor.body("evaluate", {{"expression", "seek 3"}, {"context", "repl"}});
  EXPECT_NE(where.at("result").get<std::string>().find("3"), std::string::npos);
  EXPECT_EQ(editor.event("stopped").at("reason"), "goto");
  EXPECT_EQ(variable(editor, "Run", "position"), "3");
  editor.body("citcat/seek", {{"at", "99999999"}});
  const std::string output = editor.event("output").at("output");
  EXPECT_NE(output.find("the run ends before"), std::string::npos) << output;
}

TEST_F(DapCommand, ProcessorsAreThreads) {
  DapClient editor = client({"--unchecked"});
  run(editor, {{"recording", "watched.citcat"}, {"at", "5"}});
  const Json threads = editor.body("threads").at("threads");
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads.at(0).at("id"), 1);
  EXPECT_EQ(variable(editor, "Run", "position"), "5");
  EXPECT_FALSE(editor.ask("stackTrace", {{"threadId", 2}}).at("success").get<bool>());
}

TEST_F(DapCommand, RefusesWhatIsWrongAndGoesOn) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  EXPECT_FALSE(editor.ask("next", {{"threadId", 1}}).at("success").get<bool>());
  EXPECT_FALSE(editor.ask("launch", {{"recording", "nowhere"}}).at("success").get<bool>());
  run(editor);
  for (const auto& [command, arguments] : std::vector<std::pair<const char*, Json>>{
           {"nonsense", nullptr},
           {"scopes", {{"frameId", 1 << 20}}},
           {"scopes", {{"frameId", "1"}}},
           {"variables", {{"variablesReference", 77}}},
           {"variables", {{"variablesReference", -1}}},
           {"readMemory", {{"memoryReference", "zero"}, {"count", 1}}},
           {"readMemory", {{"memoryReference", "0"}, {"count", 1LL << 40}}},
           {"disassemble", {{"memoryReference", "0"}, {"instructionCount", 1LL << 40}}},
           {"setBreakpoints", {{"breakpoints", 3}}},
           {"launch", {{"recording", "watched.citcat"}}},
           {"citcat/seek", {{"at", "nowhere"}}}}) {
    EXPECT_FALSE(editor.ask(command, arguments).at("success").get<bool>()) << command << arguments;
  }
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "[";
  editor.send_raw("Content-Length: 1000\r\n\r\n" + deep);
  EXPECT_EQ(pc(editor), hex(Program::kBegin));
  editor.body("disconnect");
  EXPECT_EQ(editor.finish(), 0);
}

TEST_F(DapCommand, AWrongBreakpointLeavesTheOthersAlone) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  run(editor);
  Json wanted = instruction_breakpoints({Program::kBegin, Program::kBegin});
  wanted["breakpoints"][0]["instructionReference"] = "zero";
  Json set = editor.body("setInstructionBreakpoints", wanted).at("breakpoints");
  EXPECT_FALSE(set.at(0).at("verified").get<bool>());
  EXPECT_NE(set.at(0).at("message").get<std::string>().find("zero"), std::string::npos);
  EXPECT_TRUE(set.at(1).at("verified").get<bool>());
  const std::string there = hex(Program::kBegin) + "/1";
  for (const char* const wrong : {"x", "0/0", "0/99999999", "/", "g/1"}) {
    set = editor
              .body("setDataBreakpoints",
                    {{"breakpoints", Json::array({{{"dataId", wrong}}, {{"dataId", there}}})}})
              .at("breakpoints");
    EXPECT_FALSE(set.at(0).at("verified").get<bool>()) << wrong;
    EXPECT_TRUE(set.at(1).at("verified").get<bool>()) << set.dump();
  }
  set = editor
            .body("setBreakpoints", {{"source", {{"path", "watched.s"}}},
                                     {"breakpoints", {{{"line", -1}}, {{"line", 1}}}}})
            .at("breakpoints");
  EXPECT_EQ(set.size(), 2u);
  EXPECT_NE(set.at(0).at("message").get<std::string>().find("line"), std::string::npos);
  set = editor
            .body("setFunctionBreakpoints",
                  {{"breakpoints", Json::array({{{"title", "x"}}, {{"name", "nowhere"}}})}})
            .at("breakpoints");
  EXPECT_NE(set.at(0).at("message").get<std::string>().find("name"), std::string::npos);
  EXPECT_EQ(set.at(1).at("message"), "no symbol has this name");
  editor.body("disconnect");
  EXPECT_EQ(editor.finish(), 0);
}

TEST_F(DapCommand, WhatIsNoMessageEndsTheSession) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  editor.send_raw("GET / HTTP/1.1\r\n\r\n");
  EXPECT_NE(editor.finish(), 0);
}

/// scripts/test-dap takes them for a client that is not ours.
TEST_F(DapCommand, KeepsItsProgram) {
  const char* const folder = std::getenv("CITCAT_KEEP");
  if (folder == nullptr) GTEST_SKIP() << "nobody asks for it";
  assemble();
  for (const char* const name : {"watched.citcat", "watched.s", "watched.elf"}) {
    if (std::filesystem::exists(file(name))) {
      std::filesystem::copy_file(file(name), std::filesystem::path(folder) / name);
    }
  }
}

/// The session of docs/dap.md, message by message.
TEST_F(DapCommand, RecordedSessionIsWhatIsSaid) {
  DapClient editor = client({"watched.citcat", "--unchecked"});
  begin(editor);
  editor.body("setInstructionBreakpoints", instruction_breakpoints({Program::kFunction}));
  editor.body("configurationDone");
  editor.event("stopped");
  editor.body("threads");
  editor.move("continue");
  const Json frames = editor.body("stackTrace", {{"threadId", 1}}).at("stackFrames");
  editor.body("scopes", {{"frameId", frames.at(0).at("id")}});
  editor.body("variables", {{"variablesReference", 1}});
  editor.body("readMemory", {{"memoryReference", "0x600"}, {"count", 16}});
  editor.body("disassemble",
              {{"memoryReference", hex(Program::kFunction)}, {"instructionCount", 3}});
  const Json data = editor.body(
      "dataBreakpointInfo", {{"name", hex(Program::kCount)}, {"asAddress", true}, {"bytes", 4}});
  editor.body(
      "setDataBreakpoints",
      {{"breakpoints", Json::array({{{"dataId", data.at("dataId")}, {"accessType", "write"}}})}});
  editor.move("reverseContinue");
  editor.move("stepBack");
  editor.move("next");
  editor.body("evaluate", {{"expression", "[0x600]"}});
  editor.body("disconnect");
  EXPECT_EQ(editor.finish(), 0);
  const std::filesystem::path kept = CITCAT_SOURCE_DIR "/tests/golden/dap/session.log";
  if (is_rebasing()) write_file(kept, editor.log());
  EXPECT_EQ(editor.log(), read_file(kept));
}

/// The same of a machine with two processors, whose queue has its head at 100b40 (queue.map).
TEST_F(DapCommand, RecordedSessionOfProcessorsIsWhatIsSaid) {
  const std::string sample = CITCAT_SOURCE_DIR "/samples/two-processors/queue";
  good({"import", sample + ".bin.zst", "--internal", "0=" + sample + ".side.0.csv", "--internal",
        "1=" + sample + ".side.1.csv", "-o", "queue.citcat", "-q"});
  DapClient editor = client({"queue.citcat", "--unchecked", "--at", "end"});
  begin(editor);
  editor.body("configurationDone");
  editor.event("stopped");
  EXPECT_EQ(editor.body("threads").at("threads").size(), 2u);
  const Json data = editor.body("dataBreakpointInfo", {{"name", "[0x100b40]:4"}});
  editor.body(
      "setDataBreakpoints",
      {{"breakpoints", Json::array({{{"dataId", data.at("dataId")}, {"accessType", "write"}}})}});
  // The store of the last thing that was put there, by the processor that did, and the one before.
  const Json stop = editor.move("reverseContinue");
  EXPECT_EQ(stop.at("reason"), "data breakpoint");
  const int writer = stop.at("threadId");
  for (const int thread : {1, 2}) {
    editor.body("stackTrace", {{"threadId", thread}, {"levels", 2}});
    editor.body("readMemory", {{"memoryReference", "0x100b40"}, {"count", 4}});
  }
  // Code of the processor that stopped, and of the other one: it knows only part of that.
  for (const char* const code : {"0x100145", "0x1000f9"}) {
    editor.body("disassemble", {{"memoryReference", code}, {"instructionCount", 4}});
  }
  EXPECT_EQ(editor.move("reverseContinue", {{"threadId", writer}}).at("threadId"), writer);
  editor.body("setDataBreakpoints", {{"breakpoints", Json::array()}});
  // Each by itself, and back to where it was.
  for (const int thread : {1, 2}) {
    const auto here = frame(editor, thread).at("instructionPointerReference");
    const Json alone{{"threadId", thread}, {"singleThread", true}, {"granularity", "instruction"}};
    editor.move("stepBack", alone);
    EXPECT_NE(frame(editor, thread).at("instructionPointerReference"), here);
    editor.move("stepIn", alone);
    EXPECT_EQ(frame(editor, thread).at("instructionPointerReference"), here);
  }
  editor.body("disconnect");
  EXPECT_EQ(editor.finish(), 0);
  const std::filesystem::path kept = CITCAT_SOURCE_DIR "/tests/golden/dap/processors.log";
  if (is_rebasing()) write_file(kept, editor.log());
  EXPECT_EQ(editor.log(), read_file(kept));
}

}  // namespace
}  // namespace citcat::testing
