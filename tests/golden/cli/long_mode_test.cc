// A recording of a processor with long mode: what is said of it, and what is made of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kLongModeState =
    R"({"cpu":"x86-64","registers":{"rip":"0x1001000","r9":"0x123456789abcdef0","efer":"0x901",
        "cs":8,"cs.limit":"0xffffffff","cs.attributes":"0xc09b","cr0":"0x11"}})";

class LongMode : public CitcatTest {
 protected:
  /// Eight bytes fetched at once, one instruction each, before paging is turned on.
  void SetUp() override {
    write_capture("x86-64");
    write_file(file("wide.json"), kLongModeState);
    good({"import", "wide.csv", "--initial-state", "wide.json", "-o", "wide.citcat"});
  }
  void write_capture(const std::string& cpu) const {
    write_file(file("wide.csv"), "#citcat-capture 1 cpu=" + cpu +
                                     " cache=none bus=8 mask=ffffffff\n"
                                     "icount,rep,type,addr,size,data\n"
                                     "0,0,CODE_RD,1001000,8,9090909090909090\n"
                                     "4,0,CODE_RD,1001008,8,9090909090909090\n");
  }
};

TEST_F(LongMode, IsKeptInTheRecording) {
  const auto info = Json::parse(good({"info", "wide.citcat", "--json"}));
  EXPECT_EQ(info.at("cpu"), "x86-64");
  EXPECT_EQ(info.at("bus").at("bus_bytes"), 8);
  EXPECT_EQ(info.at("image_bytes"), 16);
  const auto state = Json::parse(good({"dump", "wide.citcat", "--state", "--format", "json"}));
  EXPECT_EQ(state.at("registers").at("rip"), "0x1001000");
  EXPECT_EQ(state.at("registers").at("r9"), "0x123456789abcdef0");
  EXPECT_EQ(state.at("registers").at("efer"), "0x901");
  EXPECT_TRUE(state.at("registers").at("r10").is_null());
  EXPECT_FALSE(state.at("registers").contains("eip"));
  good({"check", "wide.citcat"});
  const auto trace = Json::parse(good({"info", "wide.citcat", "--trace", "--json"})).at("trace");
  EXPECT_EQ(trace.at("records"), 5);
}

TEST_F(LongMode, IsRefusedWhereAddressesHave32Bits) {
  const ProcessResult idtrace =
      run({"replay", "wide.citcat", "--format", "idtrace", "-o", "wide.idt"});
  EXPECT_EQ(idtrace.exit_code, 2);
  EXPECT_THAT(idtrace.err, HasSubstr("IDtrace's files have addresses of 32 bits"));
}

TEST_F(LongMode, IsTheSameTraceInEveryFormOfFile) {
  good({"replay", "wide.citcat", "-o", "plain.kt"});
  const std::string plain = good({"dump", "plain.kt", "--format", "json"});
  for (const char* const name : {"stored.ktz", "seekable.kt.zst"}) {
    good({"replay", "wide.citcat", "-o", name});
    EXPECT_EQ(good({"cat", name}), read_file(file("plain.kt"))) << name;
    EXPECT_EQ(good({"cat", name, "--from", "2"}), good({"cat", "wide.citcat", "--from", "2"}));
    EXPECT_EQ(Json::parse(good({"info", name, "--json"})).at("instructions"), 5) << name;
  }
  EXPECT_EQ(good({"dump", "stored.ktz", "--format", "json"}),
            good({"dump", "seekable.kt.zst", "--format", "json"}));
  for (const char* const share : {"1/2", "2/2"}) {
    good({"replay", "wide.citcat", "--shard", share, "-o", "share.ktz"});
  }
  good({"merge", "share.0001-of-0002.ktz", "share.0002-of-0002.ktz", "-o", "merged.ktz"});
  EXPECT_EQ(good({"cat", "merged.ktz"}), read_file(file("plain.kt")));
}

TEST_F(LongMode, ReplaysWithoutItsEvidence) {
  good({"slim", "wide.citcat", "-o", "slim.citcat"});
  const auto verdict = Json::parse(good({"verify", "slim.citcat", "--json"}));
  EXPECT_EQ(verdict.at("digests").at("equal"), 1);
  EXPECT_EQ(good({"cat", "slim.citcat"}), good({"cat", "wide.citcat"}));
}

TEST_F(LongMode, IsAnalysedAndExported) {
  const auto count = Json::parse(good({"analyze", "wide.citcat", "--tool", "count", "--json"}));
  EXPECT_EQ(count.at("tools").at("count").at("instructions"), 5);
  good({"replay", "wide.citcat", "--format", "din", "-o", "wide.din"});
  EXPECT_THAT(read_file(file("wide.din")), HasSubstr("2 1001004\n"));
}

TEST_F(LongMode, IsAnalysedInShares) {
  const std::string whole = good({"analyze", "wide.citcat", "--tool", "count", "--json"});
  for (const char* const share : {"1/2", "2/2"})
    good({"analyze", "wide.citcat", "--tool", "count", "--shard", share, "-o", "part"});
  const auto merged =
      Json::parse(good({"merge", "part.0001-of-0002", "part.0002-of-0002", "--json"}));
  EXPECT_EQ(merged.at("tools").at("count"), Json::parse(whole).at("tools").at("count"));
}

TEST_F(LongMode, IsPrintedWhereAScopeHolds) {
  const std::string text = good({"cat", "wide.citcat", "--format", "text"});
  EXPECT_EQ(good({"cat", "wide.citcat", "--where", "level=0", "--format", "text"}), text);
  EXPECT_EQ(good({"dump", "wide.citcat", "--where", "level=0"}), text);
  EXPECT_EQ(good({"cat", "wide.citcat", "--by", "level", "--format", "text"}), "level=0:\n" + text);
}

/// The look at a file's beginning cuts a record of 40 bytes anywhere.
TEST_F(LongMode, HasTracesThatAreKnownWhereverOneLooksNoFurther) {
  const auto record = [](char type, std::size_t bytes) {
    std::string made(bytes, '\x90');
    made.replace(0, 9, std::string(8, '\0') + type);
    return made;
  };
  for (std::size_t shift = 0; shift < 5; ++shift) {
    std::string trace("KT64\x82\x01\0\0", 8);
    for (std::size_t i = 0; i < shift; ++i) trace += record(0x01, 16);
    while (trace.size() < 70000) trace += record(0x2f, 40);
    write_file(file("long.kt"), trace);
    EXPECT_THAT(good({"info", "long.kt"}), HasSubstr("KT trace")) << shift;
  }
}

TEST_F(LongMode, HasATraceWithAnIndexThatIsTheOther) {
  good({"replay", "wide.citcat", "-o", "wide.kt"});
  good({"replay", "wide.citcat", "-o", "wide.kt.zst"});
  EXPECT_EQ(good({"cat", "wide.kt.zst"}), read_file(file("wide.kt")));
  EXPECT_EQ(good({"cat", "wide.kt.zst", "--from", "3", "--format", "text"}),
            good({"cat", "wide.citcat", "--from", "3", "--format", "text"}));
  const auto info = Json::parse(good({"info", "wide.kt.zst", "--json"}));
  EXPECT_EQ(info.at("positions"), "recorded");
}

TEST_F(LongMode, IsTracedInShares) {
  good({"replay", "wide.citcat", "-o", "wide.kt"});
  for (const char* const form : {".kt", ".kt.zst"}) {
    const std::string output = std::string("part") + form;
    for (const char* const share : {"1/2", "2/2"}) {
      good({"replay", "wide.citcat", "--shard", share, "-o", output});
    }
    const std::string whole = std::string("whole") + form;
    good({"merge", std::string("part.0001-of-0002") + form, std::string("part.0002-of-0002") + form,
          "-o", whole});
    EXPECT_EQ(good({"cat", whole}), read_file(file("wide.kt"))) << form;
  }
}

TEST_F(LongMode, IsReplayedToATraceOf64Bits) {
  good({"verify", "wide.citcat"});
  good({"replay", "wide.citcat", "-o", "wide.kt"});
  const std::string text = good({"cat", "wide.kt", "--format", "text"});
  EXPECT_THAT(text, HasSubstr("01001000 90 "));
  EXPECT_THAT(text, HasSubstr("nop"));
  EXPECT_EQ(good({"cat", "wide.citcat", "--format", "text"}), text);
  EXPECT_EQ(good({"cat", "wide.citcat"}), read_file(file("wide.kt")));
  EXPECT_EQ(good({"cat", "wide.kt"}), read_file(file("wide.kt")));
  EXPECT_THAT(good({"dump", "wide.kt"}), HasSubstr("01001000 90 "));
  const auto info = Json::parse(good({"info", "wide.kt", "--json"}));
  EXPECT_EQ(info.at("bytes"), std::filesystem::file_size(file("wide.kt")));
  EXPECT_EQ(info.at("positions"), "derived");
}

TEST_F(LongMode, NeedsAModeThatAgreesWithItself) {
  std::string state = kLongModeState;
  state.replace(state.find("0x901"), 5, "0xd01");  // LMA without paging
  write_file(file("wide.json"), state);
  good({"import", "wide.csv", "--initial-state", "wide.json", "-o", "other.citcat"});
  const ProcessResult result = run({"verify", "other.citcat"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("EFER.LMA that contradicts CR0.PG and EFER.LME"));
}

TEST_F(LongMode, IsRecoveredFromTheBusAtAnInterruptOfLongModeAlone) {
  write_file(file("interrupted.csv"),
             "#citcat-capture 1 cpu=x86-64 cache=none bus=8 mask=ffffffff\n"
             "icount,rep,type,addr,size,data\n"
             "1,0,INTA,0,1,20\n"
             "1,0,CODE_RD,1001000,8,9090909090909090\n");
  const ProcessResult recovered = run(
      {"import", "interrupted.csv", "--recover-state", "--start", "interrupt:0", "-o", "x.citcat"});
  EXPECT_EQ(recovered.exit_code, 2);
  EXPECT_THAT(recovered.err, HasSubstr("not recognised as those of long mode"));
}

TEST_F(LongMode, IsRecoveredWithAStateThatTellsPartOfItAndOthersAreNot) {
  write_file(file("interrupted.csv"),
             "#citcat-capture 1 cpu=p6 cache=none bus=8 mask=ffffffff\n"
             "icount,rep,type,addr,size,data\n"
             "1,0,INTA,0,1,20\n"
             "1,0,CODE_RD,1001000,8,9090909090909090\n");
  write_file(file("part.json"), R"({"registers":{"cr4":1712}})");
  const ProcessResult recovered =
      run({"import", "interrupted.csv", "--recover-state", "--initial-state", "part.json",
           "--start", "interrupt:0", "-o", "x.citcat"});
  EXPECT_EQ(recovered.exit_code, 2);
  EXPECT_THAT(recovered.err,
              HasSubstr("exclude each other, except for a processor with long mode"));
}

TEST_F(LongMode, NeedsAStateOfItsOwnWidth) {
  write_file(file("narrow.json"), R"({"registers":{"eip":4096}})");
  const ProcessResult narrow =
      run({"import", "wide.csv", "--initial-state", "narrow.json", "-o", "x.citcat"});
  EXPECT_EQ(narrow.exit_code, 3);
  EXPECT_THAT(narrow.err, HasSubstr("expected a state of 64 bits"));

  write_capture("p6");
  const ProcessResult wide =
      run({"import", "wide.csv", "--initial-state", "wide.json", "-o", "x.citcat"});
  EXPECT_EQ(wide.exit_code, 3);
  EXPECT_THAT(wide.err, HasSubstr("found one of the processor x86-64"));

  // Whatever the processor is called, EFER.LMA says what it does.
  write_file(file("narrow.json"),
             R"({"cpu":"p6","msrs":{"0xc0000080":"0xd01"},"registers":{"eip":4096}})");
  const ProcessResult active =
      run({"import", "wide.csv", "--initial-state", "narrow.json", "-o", "x.citcat"});
  EXPECT_EQ(active.exit_code, 3);
  EXPECT_THAT(active.err, HasSubstr("of a processor in long mode"));
}

}  // namespace
}  // namespace citcat::testing
