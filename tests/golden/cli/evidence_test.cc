// What `verify` says of evidence that is not quite what the replay does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class Evidence : public CitcatTest {
 protected:
  /// `header` declares the cache; the processor starts at 1000:0 with its stack at 2000:100.
  nlohmann::json verdict_of(const std::string& header, const std::string& capture,
                            const std::vector<std::string>& options = {}) const {
    return verdict_from(
        R"({"cpu":"486","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0",)"
        R"("ebx":"0","ds":"0x2000","ss":"0x2000","esp":"0x100"}})",
        header, capture, options);
  }
  nlohmann::json verdict_from(const std::string& state, const std::string& header,
                              const std::string& capture,
                              const std::vector<std::string>& options = {}) const {
    write_file(file("c.csv"), "#citcat-capture 1 cpu=486 bus=4 " + header +
                                  "\nicount,type,addr,size,data,flags\n" + capture);
    write_file(file("state.json"), state);
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"});
    std::vector<std::string> arguments = {"verify", "r.citcat", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return nlohmann::json::parse(run(arguments).out);
  }
};

class WriteBack : public Evidence {
 protected:
  static constexpr const char* kWriteBack = "cache=write-back line=16";
  static constexpr const char* kLinesOf32 = "cache=write-back line=32";
  /// Protected mode, flat, from 10000h on, with tables at 11000h and 12000h.
  static std::string flat_state(const std::string& esp) {
    return R"({"cpu":"486","registers":{"eip":"0x10000","eflags":"0x2","eax":"0","esp":")" + esp +
           R"(","cs":"8","cs.base":"0","cs.limit":"0xffffffff","cs.attributes":"0xc09b",)"
           R"("ss":"0x10","ss.base":"0","ss.limit":"0xffffffff","ss.attributes":"0xc093",)"
           R"("ds":"0x10","ds.base":"0","ds.limit":"0xffffffff","ds.attributes":"0xc093",)"
           R"("gdtr.base":"0x12000","gdtr.limit":"0x17","idtr.base":"0x11000","idtr.limit":"0x1ff",)"
           R"("cr0":"0x11"}})";
  }
  /// mov al,[20000h]; mov [20010h],al; hlt: both lie in one line, whose second half is given up as
  /// `given_up`.
  nlohmann::json verdict_of_halves(const std::string& given_up) const {
    return verdict_from(flat_state("0x20100"), kLinesOf32,
                        "0,CODE_RD,00010000,16,a000000200a210000200f49090909090,L\n"
                        "0,CODE_RD,00010010,16,90909090909090909090909090909090,L\n"
                        "0,MEM_RD,00020000,16,5a000000000000000000000000000000,L\n"
                        "0,MEM_RD,00020010,16,00000000000000000000000000000000,L\n"
                        "2,MEM_WR,00020000,16,5a000000000000000000000000000000,LW\n"
                        "2,MEM_WR,00020010,16," +
                            given_up +
                            ",LW\n"
                            "2,HALT,00000000,1,00,-\n");
  }
  /// mov al,5; shl al,2; pushf; pop bx; cmp al,al; pushf; hlt. The line with the flags of the first
  /// PUSHF is written back right before the second one stores.
  nlohmann::json verdict_of_flags(const std::string& low_byte) const {
    const std::string line = "000200f0,16,0000000000000000000000000000" + low_byte + "00";
    return verdict_of(kWriteBack,
                      "0,CODE_RD,00010000,16,b005c0e0029c5b38c09cf49090909090,L\n"
                      "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
                      "5,MEM_WR," +
                          line + ",LW\n5,MEM_RD," + line +
                          ",LR\n"
                          "6,MEM_WR,000200f0,16,00000000000000000000000000004600,LW\n"
                          "6,HALT,00000000,1,00,-\n");
  }
};

TEST_F(WriteBack, MayShowUndefinedFlagsThatTheNextStoreReplaces) {
  // AF, which SHL leaves undefined.
  const nlohmann::json verdict = verdict_of_flags("16");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
}

TEST_F(WriteBack, MayNotShowOtherFlags) {
  // ZF, which it does not.
  const nlohmann::json verdict = verdict_of_flags("56");
  EXPECT_EQ(verdict.at("verdict"), "diverged") << verdict.dump();
}

/// mov al,5; shl al,2; pushf; mov si,0feh; mov di,10h; movsw from the stack to DS; hlt (DS = ES =
/// SS): the copy of the flags holds what the processor left undefined, too.
TEST_F(WriteBack, MayShowUndefinedFlagsThatWereCopied) {
  const nlohmann::json verdict =
      verdict_of(kWriteBack,
                 "0,CODE_RD,00010000,16,b005c0e0029cbefe00bf10001e07a5f4,L\n"
                 "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
                 "7,MEM_RD,00020010,16,00000000000000000000000000000000,LR\n"
                 "8,MEM_WR,00020010,16,16000000000000000000000000000000,LW\n"
                 "8,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
  EXPECT_EQ(verdict.at("adopted"), 1) << verdict.dump();
}

/// In protected mode: mov al,5; shl al,2; int 20h, whose handler adds 12 to ESP, shifts once more
/// and executes INT 21h, whose handler is HLT. Right before the second frame replaces the first,
/// the line of both is written back, with AF as the first SHL may leave it. The second may leave it
/// otherwise.
TEST_F(WriteBack, MayShowUndefinedFlagsThatTheNextFrameReplaces) {
  const nlohmann::json verdict =
      verdict_from(flat_state("0x20100"), kWriteBack,
                   "0,CODE_RD,00010000,16,b005c0e002cd2083c40cc0e002cd21f4,L\n"
                   "2,MEM_RD,00011100,16,07000800008e01000f000800008e0100,L\n"
                   "2,MEM_RD,00012000,16,0000000000000000ffff0000009bcf00,L\n"
                   "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
                   "5,MEM_WR,000200f0,16,00000000070001000800000016000000,LW\n"
                   "5,MEM_RD,000200f0,16,00000000070001000800000016000000,LR\n"
                   "6,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
  EXPECT_EQ(verdict.at("adopted"), 0) << verdict.dump();
}

TEST_F(WriteBack, OfALineInHalvesCountsBoth) {
  const nlohmann::json verdict = verdict_of_halves("5a000000000000000000000000000000");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
  EXPECT_EQ(verdict.at("write_backs").at("equal"), 2);
  EXPECT_EQ(verdict.at("reads"), 4);
}

TEST_F(WriteBack, OfALineInHalvesNamesTheHalfThatDiffers) {
  const nlohmann::json verdict = verdict_of_halves("5b000000000000000000000000000000");
  EXPECT_EQ(verdict.at("verdict"), "diverged") << verdict.dump();
  EXPECT_EQ(verdict.at("write_backs").at("equal"), 1);
  EXPECT_EQ(verdict.at("divergence").at("transaction"), 5);
}

/// mov al,5; shl al,2; pushf; shl al,2; pushf; hlt: each half of the line that is written back has
/// flags that SHL leaves undefined.
TEST_F(WriteBack, OfALineInHalvesAdoptsFlagsOfBoth) {
  const nlohmann::json verdict =
      verdict_from(flat_state("0x20014"), kLinesOf32,
                   "0,CODE_RD,00010000,16,b005c0e0029cc0e0029cf49090909090,L\n"
                   "0,CODE_RD,00010010,16,90909090909090909090909090909090,L\n"
                   "2,MEM_RD,00020000,16,00000000000000000000000000000000,LR\n"
                   "2,MEM_RD,00020010,16,00000000000000000000000000000000,LR\n"
                   "5,MEM_WR,00020000,16,00000000000000000000000016000000,LW\n"
                   "5,MEM_WR,00020010,16,16000000000000000000000000000000,LW\n"
                   "5,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
  EXPECT_EQ(verdict.at("adopted"), 2) << verdict.dump();
}

/// mov al,[10h]; mov al,[10h]; hlt: the second read shows another bit.
constexpr const char* kOneBitChanged =
    "0,CODE_RD,00010000,4,a01000a0,-\n"
    "0,MEM_RD,00020010,1,41,-\n"
    "1,CODE_RD,00010004,4,1000f490,-\n"
    "1,MEM_RD,00020010,1,43,-\n"
    "2,HALT,00000000,1,00,-\n";

TEST_F(Evidence, OfOneBitThatChangedAloneIsBelievedOnlyOnDemand) {
  const nlohmann::json refused = verdict_of("cache=none", kOneBitChanged);
  EXPECT_EQ(refused.at("verdict"), "diverged") << refused.dump();
  EXPECT_EQ(refused.at("divergence").at("position"), 1);
  EXPECT_EQ(refused.at("divergence").at("transaction"), 3);
  EXPECT_THAT(refused.at("divergence").at("expected"), HasSubstr("00020010"));
  const nlohmann::json believed =
      verdict_of("cache=none", kOneBitChanged, {"--accept-bit-changes"});
  EXPECT_EQ(believed.at("verdict"), "match") << believed.dump();
  EXPECT_EQ(believed.at("single_bit_changes"), 1);
}

/// The same, where the monitor says of it, or of something else, that the emulator has stored it.
TEST_F(Evidence, OfOneBitThatAnEmulatorHasStoredIsWhatItsMonitorSays) {
  const auto verdict_beside = [&](const std::string& stored) {
    write_file(file("stored.csv"), "icount,op,eip,eax,ebx,ecx,edx\n" + stored + ",00000000\n");
    good({"import", "c.csv", "--initial-state", "state.json", "--internal", "stored.csv", "-o",
          "stored.citcat"});
    return nlohmann::json::parse(run({"verify", "stored.citcat", "--json"}).out);
  };
  EXPECT_EQ(verdict_of("cache=none", kOneBitChanged).at("verdict"), "diverged");
  const nlohmann::json told = verdict_beside("1,STORED,0,00000043,00000001,00020010");
  EXPECT_EQ(told.at("verdict"), "match") << told.dump();
  EXPECT_EQ(told.at("single_bit_changes"), 0) << "it is not suspect";
  for (const char* const other :
       {"0,STORED,0,00000043,00000001,00020010", "1,STORED,0,00000042,00000001,00020010",
        "1,STORED,0,00000043,00000001,00020011", "1,STORED,0,00000043,00000001,100020010"}) {
    EXPECT_EQ(verdict_beside(other).at("verdict"), "diverged") << other;
  }
}

}  // namespace
}  // namespace citcat::testing
