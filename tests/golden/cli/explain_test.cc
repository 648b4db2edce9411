// What `explain` finds, and what becomes of its hints.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class Explain : public CitcatTest {
 protected:
  /// The sample with AX one off in the state dump.
  void import_wrong_state(const std::string& recording,
                          const std::vector<std::string>& options = {}) const {
    std::string state = read_file(CITCAT_SOURCE_DIR "/samples/ibm5150/state.json");
    const std::string right = "\"ax\":\"0x0f4d\"";
    ASSERT_NE(state.find(right), std::string::npos);
    state.replace(state.find(right), right.size(), "\"ax\":\"0x0f4c\"");
    write_file(file("wrong.json"), state);
    std::vector<std::string> arguments = {"import",
                                          CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr",
                                          "--cpu",
                                          "8088",
                                          "--initial-state",
                                          "wrong.json",
                                          "--start",
                                          "interrupt:0",
                                          "-o",
                                          recording};
    arguments.insert(arguments.end(), options.begin(), options.end());
    good(arguments);
  }
  nlohmann::json explained(const std::string& recording,
                           const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments = {"explain", recording, "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return nlohmann::json::parse(run(arguments).out);
  }
};

TEST_F(Explain, FindsARegisterThatTheStateHasWrongly) {
  import_wrong_state("r.citcat");
  const nlohmann::json json = explained("r.citcat", {"-o", "h.json"});
  EXPECT_EQ(json.at("verdict"), "diverged");
  EXPECT_EQ(json.at("repaired"), true);
  const nlohmann::json& first = json.at("rounds").at(0).at("causes").at(0);
  EXPECT_EQ(first.at("cause"), "initial_register");
  EXPECT_EQ(first.at("hints").at(0).at("name"), "eax");
  EXPECT_EQ(first.at("hints").at(0).at("value"), "0xf4d");

  EXPECT_EQ(run({"verify", "r.citcat"}).exit_code, 1);
  EXPECT_EQ(run({"verify", "r.citcat", "--hints", "h.json"}).exit_code, 0);
  EXPECT_EQ(run({"replay", "r.citcat", "--hints", "h.json", "-o", "hinted.kt"}).exit_code, 0);
  import_sample("right.citcat");
  good({"replay", "right.citcat", "-o", "right.kt"});
  EXPECT_TRUE(read_file(file("hinted.kt")) == read_file(file("right.kt")));
}

TEST_F(Explain, SaysNothingOfARunThatAgrees) {
  import_sample("r.citcat");
  const ProcessResult result = run({"explain", "r.citcat"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("nothing to explain"));
}

TEST_F(Explain, PrintsForPeople) {
  import_wrong_state("r.citcat");
  const ProcessResult result = run({"explain", "r.citcat"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("push ax"));
  EXPECT_THAT(result.out, HasSubstr("1. initial_register   eax was f4d at the start"));
  EXPECT_THAT(result.out, HasSubstr("the whole run agrees"));
}

TEST_F(Explain, LeavesHintsThatOnlyOneProcessTakes) {
  import_wrong_state("r.citcat");
  explained("r.citcat", {"-o", "h.json"});
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--jobs", "2"}, {"--shard", "1/2"}}) {
    std::vector<std::string> arguments = {"replay", "r.citcat", "--hints", "h.json", "-o", "t.kt"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("import --hints"));
  }
}

TEST_F(Explain, LeavesHintsThatImportKeeps) {
  import_wrong_state("r.citcat");
  explained("r.citcat", {"-o", "h.json"});
  import_wrong_state("kept.citcat", {"--hints", "h.json"});
  good({"check", "kept.citcat"});
  const nlohmann::json verdict = nlohmann::json::parse(good({"verify", "kept.citcat", "--json"}));
  EXPECT_EQ(verdict.at("verdict"), "match");
  good({"checkpoint", "kept.citcat", "--every", "100"});
  good({"cat", "kept.citcat", "--from", "300", "--to", "310"});
  good({"slim", "kept.citcat", "-o", "slim.citcat"});
  good({"verify", "slim.citcat"});
}

TEST_F(Explain, LeavesHintsThatTheAccountingCounts) {
  import_wrong_state("r.citcat");
  explained("r.citcat", {"-o", "h.json"});
  const nlohmann::json verdict = nlohmann::json::parse(
      good({"verify", "r.citcat", "--hints", "h.json", "--account", "--json"}));
  const nlohmann::json& a = verdict.at("accounting");
  EXPECT_EQ(a.at("hints"), 1);
  EXPECT_EQ(a.at("instructions"), 621);
  EXPECT_EQ(a.at("interrupts").at("counted"), 9);
  EXPECT_EQ(a.at("cache_lines"), 0);
  // The state names twelve registers of those an 8088 has.
  EXPECT_THAT(a.at("assumed_registers").dump(), HasSubstr("ebx"));
  EXPECT_LE(a.at("compared"), a.at("transactions"));
  // The rest are fetches that ran ahead of the program, and what lies behind the end.
  std::uint64_t compared =
      verdict.at("interrupts").get<std::uint64_t>() + verdict.at("reads").get<std::uint64_t>();
  for (const char* kind : {"writes", "io_writes", "instruction_stream"}) {
    compared += verdict.at(kind).at("checked").get<std::uint64_t>();
  }
  EXPECT_EQ(a.at("compared"), compared);
}

TEST_F(Explain, LeavesHintsThatAnotherRecordingRefuses) {
  import_wrong_state("r.citcat");
  explained("r.citcat", {"-o", "h.json"});
  import_sample("right.citcat");
  const ProcessResult result = run({"verify", "right.citcat", "--hints", "h.json"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("h.json:0: expected hints for the recording"));
}

/// mov al,[10h]; mov al,[10h]; hlt: the second of three reads has another bit.
TEST_F(Explain, FindsAReadThatItsNeighboursContradict) {
  write_file(file("c.csv"),
             "#citcat-capture 1 cpu=486 bus=4 cache=none\nicount,type,addr,size,data,flags\n"
             "0,CODE_RD,00010000,4,a01000a0,-\n"
             "0,MEM_RD,00020010,1,41,-\n"
             "1,CODE_RD,00010004,4,1000a010,-\n"
             "1,MEM_RD,00020010,1,43,-\n"
             "2,CODE_RD,00010008,4,00f49090,-\n"
             "2,MEM_RD,00020010,1,41,-\n"
             "3,HALT,00000000,1,00,-\n");
  write_file(file("state.json"),
             R"({"cpu":"486","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0",)"
             R"("ebx":"0","ds":"0x2000","ss":"0x2000","esp":"0x100"}})");
  good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"});
  const nlohmann::json json = explained("r.citcat", {"-o", "h.json"});
  const nlohmann::json& first = json.at("rounds").at(0).at("causes").at(0);
  EXPECT_EQ(first.at("cause"), "captured_read") << json.dump(1);
  EXPECT_EQ(first.at("transaction"), 3);
  good({"verify", "r.citcat", "--hints", "h.json"});
}

}  // namespace
}  // namespace citcat::testing
