// Lines written back that hold values no manual tells.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/process.h"

namespace citcat::testing {
namespace {

constexpr const char* kState =
    R"({"cpu":"486","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0","ebx":"0",)"
    R"("ds":"0x2000","ss":"0x2000","esp":"0x100"}})";

nlohmann::json verdict_of(const std::string& capture) {
  const TemporaryFolder folder;
  write_file(folder.path() / "c.csv",
             "#citcat-capture 1 cpu=486 cache=write-back line=16 bus=4\n"
             "icount,type,addr,size,data,flags\n" +
                 capture);
  write_file(folder.path() / "state.json", kState);
  const ProcessResult imported = run_citcat(
      {"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"}, folder.path());
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  return nlohmann::json::parse(run_citcat({"verify", "r.citcat", "--json"}, folder.path()).out);
}

/// mov al,5; shl al,2; pushf; pop bx; cmp al,al; pushf; hlt. AF is undefined after SHL, and the
/// captured processor sets it. The line is written back right before the second PUSHF stores.
TEST(WriteBack, MayShowUndefinedFlagsThatTheNextStoreReplaces) {
  const nlohmann::json verdict = verdict_of(
      "0,CODE_RD,00010000,16,b005c0e0029c5b38c09cf49090909090,L\n"
      "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
      "5,MEM_WR,000200f0,16,00000000000000000000000000001600,LW\n"
      "5,MEM_RD,000200f0,16,00000000000000000000000000001600,LR\n"
      "6,MEM_WR,000200f0,16,00000000000000000000000000004600,LW\n"
      "6,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
}

/// The same, but ZF is not what SHL leaves.
TEST(WriteBack, MayNotShowOtherFlags) {
  const nlohmann::json verdict = verdict_of(
      "0,CODE_RD,00010000,16,b005c0e0029c5b38c09cf49090909090,L\n"
      "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
      "5,MEM_WR,000200f0,16,00000000000000000000000000005600,LW\n"
      "5,MEM_RD,000200f0,16,00000000000000000000000000005600,LR\n"
      "6,MEM_WR,000200f0,16,00000000000000000000000000004600,LW\n"
      "6,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "diverged") << verdict.dump();
}

/// mov al,5; shl al,2; pushf; mov si,0feh; mov di,10h; movsw from the stack to DS; hlt (DS = ES =
/// SS): the copy of the flags holds what the processor left undefined, too.
TEST(WriteBack, MayShowUndefinedFlagsThatWereCopied) {
  const nlohmann::json verdict = verdict_of(
      "0,CODE_RD,00010000,16,b005c0e0029cbefe00bf10001e07a5f4,L\n"
      "2,MEM_RD,000200f0,16,00000000000000000000000000000000,LR\n"
      "7,MEM_RD,00020010,16,00000000000000000000000000000000,LR\n"
      "8,MEM_WR,00020010,16,16000000000000000000000000000000,LW\n"
      "8,HALT,00000000,1,00,-\n");
  EXPECT_EQ(verdict.at("verdict"), "match") << verdict.dump();
  EXPECT_EQ(verdict.at("adopted"), 1) << verdict.dump();
}

}  // namespace
}  // namespace citcat::testing
