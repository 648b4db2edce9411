// How a run ends - in a shutdown, a halt, a reset - and that every command says the same of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/flat_machine.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class Endings : public CitcatTest {
 protected:
  /// What `import` prints of a capture with these rows, without a cache.
  Json import(const std::string& rows, const std::string& state = flat_machine(0),
              const std::string& machine = "cpu=386 cache=none line=0 bus=4") {
    write_file(file("state.json"), state);
    write_file(file("c.csv"), "#citcat-capture 1 " + machine +
                                  " mask=ffffffff\n"
                                  "icount,rep,clk,type,addr,size,flags,burst,data\n" +
                                  rows);
    std::filesystem::remove(file("r.citcat"));
    return Json::parse(good(
        {"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "--json", "-q"}));
  }
  /// The same with values that cross no bus.
  void import_with_internal(const std::string& rows, const std::string& values) {
    write_file(file("v.csv"), "icount,op,eip,eax,ebx,ecx,edx\n" + values);
    import(rows);
    std::filesystem::remove(file("r.citcat"));
    good({"import", "c.csv", "--initial-state", "state.json", "--internal", "v.csv", "-o",
          "r.citcat", "-q"});
  }
  /// All commands that give a verdict say that the run matches and has so many instructions.
  /// Returns what `verify` says.
  Json expect_match(std::uint64_t instructions) {
    const Json verdict = expect_match_of_replays(instructions);
    good({"slim", "r.citcat", "-o", "s.citcat", "-q"});
    EXPECT_EQ(Json::parse(good({"verify", "s.citcat", "--json"}))["verdict"], "match");
    return verdict;
  }
  /// The same without `slim`.
  Json expect_match_of_replays(std::uint64_t instructions) {
    const ProcessResult verified = run({"verify", "r.citcat", "--json"});
    EXPECT_EQ(verified.exit_code, 0);
    const Json verdict = Json::parse(verified.out);
    EXPECT_EQ(verdict["verdict"], "match");
    EXPECT_EQ(verdict["instructions"], instructions);
    const Json explained = Json::parse(good({"explain", "r.citcat", "--json"}));
    EXPECT_EQ(explained["verdict"], "match");
    for (const char* checked : {"", "--unchecked"}) {
      std::vector<std::string> replay = {"replay", "r.citcat", "--json"};
      if (*checked != 0) replay.emplace_back(checked);
      const Json replayed = Json::parse(good(replay));
      EXPECT_EQ(replayed["end"], "complete") << checked;
      EXPECT_EQ(replayed["instructions"], instructions) << checked;
    }
    good({"report", "r.citcat", "-o", "r.html", "-q"});
    EXPECT_EQ(good({"sql", "r.citcat", "select count(*) from instructions", "--csv"}),
              "count(*)\n" + std::to_string(instructions) + "\n");
    return verdict;
  }
  /// `verify` and `explain` say where it is that the run differs, and what is there.
  void expect_divergence(const std::string& reason) {
    const ProcessResult verified = run({"verify", "r.citcat", "--json"});
    EXPECT_EQ(verified.exit_code, 1);
    const Json divergence = Json::parse(verified.out)["divergence"];
    ASSERT_FALSE(divergence.is_null());
    EXPECT_THAT(divergence["reason"], HasSubstr(reason));
    const ProcessResult explained = run({"explain", "r.citcat", "--time", "20"});
    EXPECT_NE(explained.exit_code, 0);
    EXPECT_THAT(explained.out, HasSubstr(reason));
    EXPECT_EQ(run({"replay", "r.citcat"}).exit_code, 1);
    EXPECT_EQ(run({"report", "r.citcat", "-o", "r.html", "-q"}).exit_code, 1);
  }
};

/// UD2, and the table has no entry for it, for #GP, or for a double fault.
TEST_F(Endings, AShutdownThatTheBusShowsIsTheEndOfTheRun) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n"
      "0,0,0,SHUTDOWN,0,0,-,0,\n");
  EXPECT_EQ(imported["instructions"], 0);
  EXPECT_EQ(expect_match(0)["shutdown"], "shown");
  EXPECT_THAT(good({"verify", "r.citcat"}), HasSubstr("in a shutdown, which the bus shows"));
  EXPECT_EQ(Json::parse(good({"info", "r.citcat", "--json"}))["instructions"], 0);
  // It comes before the first instruction of a handler, whose level nobody knows.
  EXPECT_EQ(good({"sql", "r.citcat", "select vector, level from events", "--csv"}),
            "vector,level\n6,0\n13,0\n8,0\n,\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select count(*) n from events where level > 3", "--csv"}),
            "n\n0\n");
}

/// Checkpoints, or their beginning alone, lead a replay to the same end.
TEST_F(Endings, AShutdownBehindCheckpointsIsToldAsWithoutThem) {
  for (const char* rows : {"0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n",
                           "0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n0,0,0,SHUTDOWN,0,0,-,0,\n",
                           "0,0,0,CODE_RD,5000,4,-,0,90900f0b\n2,0,0,SHUTDOWN,0,0,-,0,\n"}) {
    import(rows);
    const auto said = [&] {
      return good({"sql", "r.citcat", "select * from events", "--csv"}) +
             good({"analyze", "r.citcat", "--tool", "events", "--tool", "count"}) +
             good({"cat", "r.citcat"}) + good({"verify", "r.citcat", "--json"});
    };
    const std::string before = said();
    EXPECT_THAT(before, HasSubstr("shutdown"));
    good({"checkpoint", "r.citcat", "--every", "1", "-q"});
    EXPECT_EQ(said(), before);
  }
}

/// The handler of an SMI has no table of interrupts to go by.
TEST_F(Endings, AShutdownInSystemManagementModeIsOneToo) {
  std::string state = flat_machine(0);
  state.replace(state.find("386"), 3, "pentium");
  const std::string code = "90909090909090909090909090909090";
  const std::string rows = "0,0,0,CODE_RD,5000,16,L,0," + code + "\n0,0,0,CODE_RD,5010,16,L,1," +
                           code + "\n2,0,0,SMI,0,0,-,0,\n2,0,0,CODE_RD,38000,16,L,0,0f0b" +
                           code.substr(4) + "\n2,0,0,CODE_RD,38010,16,L,1," + code + "\n";
  const std::string machine = "cpu=pentium cache=write-back line=32 bus=8";
  import(rows + "2,0,0,SHUTDOWN,0,0,-,0,\n", state, machine);
  EXPECT_EQ(expect_match(2)["shutdown"], "shown");
  import(rows, state, machine);
  EXPECT_EQ(expect_match(2)["shutdown"], "not shown");
}

TEST_F(Endings, AShutdownBehindInstructionsCountsThem) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,9090900f\n"
      "0,0,0,CODE_RD,5004,4,-,0,0b909090\n"
      "3,0,0,SHUTDOWN,0,0,-,0,\n");
  EXPECT_EQ(imported["instructions"], 3);
  EXPECT_EQ(expect_match(3)["shutdown"], "shown");
}

TEST_F(Endings, AShutdownThatTheBusDoesNotShowIsOneToo) {
  import("0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n");
  EXPECT_EQ(expect_match(0)["shutdown"], "not shown");
  EXPECT_THAT(good({"verify", "r.citcat"}),
              HasSubstr("in a shutdown, which the bus does not show"));
}

TEST_F(Endings, AShutdownWhereTheCaptureGoesOnIsADivergence) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,0f0b9090\n"
      "4,0,0,MEM_WR,6000,4,-,0,01000000\n");
  expect_divergence("the replay shuts down");
}

TEST_F(Endings, AShutdownOfTheBusThatTheReplayDoesNotMakeIsADivergence) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "2,0,0,SHUTDOWN,0,0,-,0,\n"
      "3,0,0,CODE_RD,5000,4,-,0,90909090\n");
  expect_divergence("special cycle");
}

TEST_F(Endings, AHaltAtTheEndIsTheEnd) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,90f49090\n"
      "1,0,0,HALT,2,0,-,0,\n");
  EXPECT_EQ(imported["instructions"], 2);
  EXPECT_TRUE(expect_match(2)["shutdown"].is_null());
}

TEST_F(Endings, AHaltThatNothingWakesWhereTheCaptureGoesOnIsADivergence) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,90f49090\n"
      "1,0,0,HALT,2,0,-,0,\n"
      "2,0,0,MEM_WR,6000,4,-,0,01000000\n");
  expect_divergence("the processor halted where nothing wakes it");
}

TEST_F(Endings, AResetEndsTheRecordingBeforeWhatFollows) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "2,0,0,CODE_RD,5004,4,-,0,90909090\n"
      "2,0,0,RESET,0,0,-,0,\n"
      "2,0,0,CODE_RD,fffffff0,4,-,0,ea000000\n");
  EXPECT_EQ(imported["instructions"], 2);
  EXPECT_THAT(imported["warnings"].dump(), HasSubstr("resets the processor"));
  expect_match(2);
}

TEST_F(Endings, AResetAtTheBeginningIsNone) {
  const Json imported = import(
      "0,0,0,RESET,0,0,-,0,\n"
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "1,0,0,CODE_RD,5004,4,-,0,90909090\n");
  EXPECT_EQ(imported["instructions"], 2);
  EXPECT_THAT(imported["warnings"].dump(), Not(HasSubstr("resets the processor")));
  expect_match(2);
}

/// NOP, then PUSH CS: memory stays, and the processor is in real mode (Intel SDM vol. 3, 9.1.1).
TEST_F(Endings, AResetBehindWhichCountingGoesOnIsNoEnd) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "2,0,0,RESET,0,1,-,0,01\n"
      "2,0,0,CODE_RD,fffffff0,4,-,0,900e9090\n"
      "3,0,0,MEM_WR,fffe,2,-,0,00f0\n");
  EXPECT_EQ(imported["instructions"], 4);
  EXPECT_THAT(imported["warnings"].dump(), Not(HasSubstr("resets the processor")));
  expect_match(4);
  EXPECT_THAT(good({"dump", "r.citcat"}), HasSubstr("event reset transaction 1 instruction 2"));
}

TEST_F(Endings, AResetGoesOnFromAShutdownAndFromAHalt) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,900f0b90\n"
      "1,0,0,SHUTDOWN,0,0,-,0,\n"
      "1,0,0,RESET,0,1,-,0,02\n"
      "1,0,0,CODE_RD,fffffff0,4,-,0,0ef49090\n"
      "1,0,0,MEM_WR,fffe,2,-,0,00f0\n"
      "2,0,0,HALT,2,0,-,0,\n"
      "3,0,0,RESET,0,1,-,0,01\n"
      "3,0,0,CODE_RD,fffffff0,4,-,0,0ef49090\n"
      "3,0,0,MEM_WR,fffe,2,-,0,00f0\n");
  EXPECT_TRUE(expect_match(4)["shutdown"].is_null());
}

TEST_F(Endings, AResetBehindAShutdownThatTheReplayDoesNotMakeIsADivergence) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "1,0,0,RESET,0,1,-,0,02\n"
      "3,0,0,MEM_WR,fffe,2,-,0,00f0\n");
  expect_divergence("an interrupt falls where the replay has no boundary");
}

/// PUSH EDX, with an operand-size prefix.
TEST_F(Endings, TheSignatureBehindAResetIsAnAnswerOfCpuid) {
  import_with_internal(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "2,0,0,RESET,0,1,-,0,01\n"
      "2,0,0,CODE_RD,fffffff0,4,-,0,66529090\n"
      "2,0,0,MEM_WR,fffc,4,-,0,73060000\n",
      "2,CPUID,fff0,673,0,0,0\n");
  expect_match(3);
}

TEST_F(Endings, AResetThatSaysSomethingElseIsRefused) {
  write_file(file("bad.csv"),
             "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
             "icount,rep,clk,type,addr,size,flags,burst,data\n"
             "0,0,0,RESET,0,1,-,0,03\n");
  const ProcessResult refused = run({"import", "bad.csv", "-o", "bad.citcat"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("1 or 2 if counting goes on"));
}

/// Instructions that need nothing of the bus complete behind its last transaction.
TEST_F(Endings, TheCaptureSaysHowFarTheProcessorHasCome) {
  const Json imported = import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "3,0,0,REACHED,0,0,-,0,\n");
  EXPECT_EQ(imported["instructions"], 3);
  expect_match(3);
  EXPECT_EQ(Json::parse(good({"info", "r.citcat", "--json"}))["instructions"], 3);
  EXPECT_THAT(good({"dump", "c.csv"}), HasSubstr("complete: 3 instructions"));
  EXPECT_THAT(good({"dump", "c.csv", "--format", "csv"}), HasSubstr("3,0,,REACHED,"));
  good({"convert", "c.csv", "--to", "native", "-o", "c.cap", "-q"});
  EXPECT_THAT(good({"dump", "c.cap"}), HasSubstr("complete: 3 instructions"));
}

/// Interrupted, too: nothing is taken for an instruction that was going on.
TEST_F(Endings, AnInterruptedCaptureSaysHowFarTheProcessorHasCome) {
  import(
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n"
      "3,0,0,REACHED,0,0,-,0,\n"
      ",,,CUT,0,1,-,0,03\n");
  expect_match(3);
}

/// The handler's first instruction is not the recording's: the one that faulted never completes.
TEST_F(Endings, ARecordingMayEndBehindTheDeliveryOfAFault) {
  std::string state = flat_machine(0);
  const std::string tables = R"("idtr.base": 0, "idtr.limit": 0)";
  state.replace(state.find(tables), tables.size(),
                R"("idtr.base": 28672, "idtr.limit": 255, "gdtr.base": 30720, "gdtr.limit": 255)");
  import(
      "0,0,0,CODE_RD,5000,4,-,0,90900f0b\n"
      "2,0,0,MEM_RD,7030,4,-,0,00600800\n"
      "2,0,0,MEM_RD,7034,4,-,0,008e0000\n"
      "2,0,0,MEM_RD,7808,4,-,0,ffff0000\n"
      "2,0,0,MEM_RD,780c,4,-,0,009bcf00\n"
      "2,0,0,MEM_WR,7ffc,4,-,0,02000100\n"
      "2,0,0,MEM_WR,7ff8,4,-,0,08000000\n"
      "2,0,0,MEM_WR,7ff4,4,-,0,02500000\n"
      "2,0,0,REACHED,0,0,-,0,\n",
      state);
  expect_match_of_replays(2);
  good({"slim", "r.citcat", "-o", "s.citcat"});
  EXPECT_EQ(run({"verify", "s.citcat"}).exit_code, 0);
  for (const char* recording : {"r", "s"})
    good({"replay", recording + std::string(".citcat"), "-o", recording + std::string(".kt")});
  EXPECT_EQ(read_file(file("s.kt")), read_file(file("r.kt")));
}

TEST_F(Endings, ACaptureThatGoesOnBehindItsEndIsRefused) {
  const std::string begin =
      "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
      "icount,rep,clk,type,addr,size,flags,burst,data\n"
      "0,0,0,CODE_RD,5000,4,-,0,90909090\n";
  write_file(file("state.json"), flat_machine(0));
  const auto refused = [&](const std::string& rows) {
    write_file(file("c.csv"), begin + rows);
    const ProcessResult result =
        run({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"});
    EXPECT_EQ(result.exit_code, 3);
    return result.err;
  };
  EXPECT_THAT(refused("1,0,0,REACHED,0,0,-,0,\n2,0,0,MEM_WR,6000,4,-,0,01000000\n"),
              HasSubstr("follows the one that says how far the processor has come"));
  EXPECT_THAT(refused("3,0,0,MEM_WR,6000,4,-,0,01000000\n1,0,0,REACHED,0,0,-,0,\n"),
              HasSubstr("found one of instruction 3"));
  EXPECT_THAT(refused(",,0,REACHED,0,0,-,0,\n"), HasSubstr("found no count"));
}

/// One number of instructions, whoever is asked: those that the capture shows to be complete.
class Counts : public CitcatTest {
 protected:
  static std::string number(const Json& json) { return json["instructions"].dump(); }
  /// `import` and its arguments make r.citcat; every command says the same number of it.
  void expect_one_number(const std::string& name, std::vector<std::string> import) {
    SCOPED_TRACE(name);
    std::filesystem::remove(file("r.citcat"));
    import.insert(import.begin(), "import");
    import.insert(import.end(), {"-o", "r.citcat", "--json", "-q"});
    const std::string imported = number(Json::parse(good(import)));
    const std::vector<std::vector<std::string>> commands = {
        {"info"}, {"verify"}, {"replay"}, {"replay", "--unchecked"}, {"analyze", "--tool", "null"}};
    for (std::vector<std::string> command : commands) {
      SCOPED_TRACE(command.front() + " " + command.back());
      command.insert(command.begin() + 1, "r.citcat");
      command.insert(command.end(), {"--json", "-q"});
      EXPECT_EQ(number(Json::parse(good(command))), imported);
    }
    EXPECT_THAT(good({"explain", "r.citcat"}), HasSubstr("match: " + imported + " instructions"));
    good({"slim", "r.citcat", "-o", "s.citcat", "-q"});
    for (const char* const command : {"info", "verify", "replay"}) {
      SCOPED_TRACE(std::string("slim, ") + command);
      EXPECT_EQ(number(Json::parse(good({command, "s.citcat", "--json", "-q"}))), imported);
    }
  }
};

TEST_F(Counts, AreOneNumberOfEverySample) {
  const std::string samples = CITCAT_SOURCE_DIR "/samples/";
  expect_one_number("5150", {kArea5150, "--cpu", "8088", "--initial-state",
                             samples + "ibm5150/state.json", "--start", "interrupt:0"});
  expect_one_number("Linux", {kLinuxStart, "--internal", kLinuxStartValues});
}

TEST_F(Counts, AreOneNumberOfEveryShortSharedCapture) {
  const std::filesystem::path shared =
      std::filesystem::path(CITCAT_SOURCE_DIR).parent_path() / "shared/data";
  int captures = 0;
  std::error_code absent;
  for (const char* const folder : {"machine", "machine64"}) {
    for (const auto& entry : std::filesystem::directory_iterator(shared / folder, absent)) {
      if (!entry.path().string().ends_with("_tiny")) continue;
      // A form of each, in turn: scripts/test-acceptance has all.
      const std::string form(1, "ABC"[captures++ % 3]);
      const std::string bus = (entry.path() / ("bus" + form + ".bin.zst")).string();
      expect_one_number(bus, {bus, "--internal", (entry.path() / "side.csv.zst").string()});
    }
  }
  const std::filesystem::path pins = shared / "logic-analyser-samples/ibm5150_first110k.sr";
  if (std::filesystem::exists(pins)) {
    ++captures;
    expect_one_number(pins.string(),
                      {pins.string(), "--cpu", "8088", "--initial-state",
                       CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start", "interrupt:0"});
  }
  if (captures == 0) GTEST_SKIP() << "../shared/data is not there";
}

}  // namespace
}  // namespace citcat::testing
