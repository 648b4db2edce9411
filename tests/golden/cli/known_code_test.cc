// Code that was captured, beside files that have it: `verify --code`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"
#include "golden/flat_machine.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class KnownCodeFile : public CitcatTest {
 protected:
  void SetUp() override {
    CitcatTest::SetUp();
    write_file(file("state.json"), flat_machine(6));
    // A page that begins with: shr eax, 1; mov [6000h], eax; nop; nop; hlt.
    code_.resize(4096);
    code_.replace(0, 10, std::string("\xd1\xe8\xa3\x00\x60\x00\x00\x90\x90\xf4", 10));
  }
  /// Captured with SAR in place of SHR, which is one bit, and the same for a positive number.
  void import(const std::string& first_dword = "d1f8a300") {
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=386 cache=none line=0 bus=4 mask=ffffffff\n"
               "icount,rep,clk,type,addr,size,flags,burst,data\n"
               "0,0,0,CODE_RD,5000,4,-,0," +
                   first_dword +
                   "\n0,0,0,CODE_RD,5004,4,-,0,60000090\n"
                   "1,0,0,MEM_WR,6000,4,-,0,03000000\n"
                   "2,0,0,CODE_RD,5008,4,-,0,90f49090\n"
                   "4,0,0,HALT,2,0,-,0,\n");
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat", "-q"});
  }
  Json verify(const std::string& code) {
    return Json::parse(good({"verify", "r.citcat", "--code", code, "--json", "-q"}));
  }

  std::string code_;
};

TEST_F(KnownCodeFile, ABitThatTheBusDoesNotContradictIsDoubted) {
  import();
  write_file(file("rom.bin"), code_);
  const Json verdict = verify("rom.bin@5000");
  EXPECT_EQ(verdict["verdict"], "match");
  EXPECT_EQ(verdict["code"]["bytes"], 10);
  EXPECT_EQ(verdict["code"]["equal"], 9);
  ASSERT_EQ(verdict["code"]["doubts"].size(), 1u);
  const Json& doubt = verdict["code"]["doubts"][0];
  EXPECT_EQ(doubt["linear"], "00005001");
  EXPECT_EQ(doubt["executed"], "f8");
  EXPECT_EQ(doubt["known"], "e8");
  EXPECT_EQ(doubt["file"], "rom.bin");
  EXPECT_EQ(doubt["offset"], 1);
  EXPECT_THAT(good({"verify", "r.citcat", "--code", "rom.bin@5000"}),
              HasSubstr("00005001: f8, e8 at rom.bin:1"));
}

TEST_F(KnownCodeFile, WhatAgreesIsSaidToAgree) {
  import("d1e8a300");
  write_file(file("rom.bin"), code_);
  const Json code = verify("rom.bin@5000")["code"];
  EXPECT_EQ(code["equal"], code["bytes"]);
  EXPECT_TRUE(code["doubts"].empty());
  EXPECT_THAT(good({"verify", "r.citcat", "--code", "rom.bin@5000"}), Not(HasSubstr("doubtful")));
  EXPECT_TRUE(Json::parse(good({"verify", "r.citcat", "--json"}))["code"].is_null());
}

/// Two bytes beside each other, or more bits of one: somebody has changed the code.
TEST_F(KnownCodeFile, WhatWasPatchedIsCountedAndNotDoubted) {
  import();
  code_[0] = '\xd3';
  write_file(file("two.bin"), code_);
  code_[0] = '\xd1';
  code_[1] = '\x00';
  write_file(file("bits.bin"), code_);
  for (const char* const name : {"two.bin@5000", "bits.bin@5000"}) {
    const Json code = verify(name)["code"];
    EXPECT_TRUE(code["doubts"].empty()) << name;
    EXPECT_GE(code["changed"], 1) << name;
  }
}

TEST_F(KnownCodeFile, AFileThatHoldsNothingOfItComparesNothing) {
  import();
  write_file(file("rom.bin"), code_);
  EXPECT_EQ(verify("rom.bin@9000")["code"]["bytes"], 0);
}

TEST_F(KnownCodeFile, WhatCannotBeComparedIsRefused) {
  import();
  write_file(file("rom.bin"), code_);
  const ProcessResult no_base = run({"verify", "r.citcat", "--code", "rom.bin"});
  EXPECT_EQ(no_base.exit_code, 2);
  EXPECT_THAT(no_base.err, HasSubstr("rom.bin@BASE"));
  EXPECT_EQ(run({"verify", "r.citcat", "--code", "absent.bin@5000"}).exit_code, 4);
  write_file(file("broken"), "\x7f\x45LF");
  EXPECT_EQ(run({"verify", "r.citcat", "--code", "broken"}).exit_code, 3);
}

}  // namespace
}  // namespace citcat::testing
