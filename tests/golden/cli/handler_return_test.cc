// What an IRET ends: the handler that it goes back from, and not one whose own frame it takes.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;

/// 1000: nop (four), hlt. The interrupt comes after two of them. Its handler calls another one, as
/// programs do that take over a PC's timer: 2000: pushf; 2001: call far 0:3000; 2006: inc bx; 2007:
/// iret; 3000: iret.
class HandlerReturn : public CitcatTest {
 protected:
  void SetUp() override {
    CitcatTest::SetUp();
    write_file(file("bus.csv"),
               "seq,icount,rep,clk,type,addr,size,be,flags,burst,data\n"
               "0,0,0,0,CODE_RD,00001000,4,f,-,0,90909090\n"
               "1,2,0,2,INTA,00000000,1,0,-,0,08\n"
               "2,2,0,4,MEM_RD,00000020,4,f,-,0,00200000\n"
               "3,2,0,6,CODE_RD,00002000,4,f,-,0,9c9a0030\n"
               "4,2,0,8,CODE_RD,00002004,4,f,-,0,000043cf\n"
               "5,4,0,10,CODE_RD,00003000,4,f,-,0,cf000000\n"
               "6,9,0,12,CODE_RD,00001004,4,f,-,0,f4000000\n"
               "7,9,0,14,HALT,00000000,0,0,-,0,\n");
    write_file(file("state.json"),
               R"({"cpu":"386","registers":{"cs":"0x0000","eip":"0x1000","eflags":"0x0202",)"
               R"("ss":"0x0000","esp":"0x0800","ds":"0x0000","eax":"0","ebx":"0","ecx":"0"}})");
    good({"import", "bus.csv", "--format", "record-csv", "--cpu", "386", "--initial-state",
          "state.json", "--bus", "none", "-o", "r.citcat", "-q"});
  }
};

TEST_F(HandlerReturn, OfACalledHandlerLeavesTheCallerInItsInterrupt) {
  const Json count = Json::parse(good(
      {"analyze", "r.citcat", "--unchecked", "--tool", "count", "--where", "interrupt", "--json"}));
  EXPECT_EQ(count.at("tools").at("count").at("instructions"), 5);
  const Json calls =
      Json::parse(good({"sql", "r.citcat", "--unchecked", "--json",
                        "select position, instructions from calls where procedure like '%3000%'"}));
  ASSERT_EQ(calls.size(), 1u) << calls;
  EXPECT_EQ(calls[0].at("position"), 4);
  EXPECT_EQ(calls[0].at("instructions"), 1);
}

}  // namespace
}  // namespace citcat::testing
