// A translation that the processor has dropped, as commands show it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// mov al,[10h]; mov al,[10h]; hlt at 1000:0, without paging.
class DroppedTranslation : public CitcatTest {
 protected:
  void import(const std::string& archive, const std::string& rows) const {
    write_file(file("c.csv"),
               "#citcat-capture 1 cpu=486 bus=4 cache=none\n"
               "icount,type,addr,size,data,flags\n"
               "0,CODE_RD,00010000,4,a01000a0,-\n"
               "0,MEM_RD,00020010,1,41,-\n"
               "1,CODE_RD,00010004,4,1000f490,-\n"
               "1,MEM_RD,00020010,1,41,-\n"
               "2,HALT,00000000,1,00,-\n");
    write_file(file("state.json"),
               R"({"cpu":"486","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0",)"
               R"("ds":"0x2000","ss":"0x2000","esp":"0x100"}})");
    write_file(file("side.csv"), "icount,op,eip,eax,ebx,ecx,edx\n" + rows);
    good({"import", "c.csv", "--initial-state", "state.json", "--internal", "side.csv", "-o",
          archive});
  }
  static constexpr const char* kDropped = "1,DROPPED,0,00000000,00000000,00020123,00000000\n";
};

TEST_F(DroppedTranslation, IsShownByEachCommand) {
  import("r.citcat", kDropped);
  EXPECT_EQ(nlohmann::json::parse(good({"verify", "r.citcat", "--json"})).at("verdict"), "match");
  EXPECT_EQ(nlohmann::json::parse(good({"info", "r.citcat", "--json"})).at("dropped_translations"),
            1);
  EXPECT_THAT(good({"dump", "r.citcat", "--format", "json"}),
              HasSubstr(R"({"event":"translation_dropped","instruction":1,"iteration":0,)"
                        R"("address":"00020000"})"));
  EXPECT_THAT(good({"cat", "r.citcat", "--format", "text"}),
              HasSubstr("translation_dropped 00020000\n"));
  EXPECT_THAT(good({"cat", "r.citcat", "--format", "csv"}),
              HasSubstr("translation_dropped,1,00020000,,,,0,,\n"));
  EXPECT_THAT(good({"analyze", "r.citcat", "--tool", "events", "--json"}),
              HasSubstr(R"("translation dropped")"));
  EXPECT_THAT(good({"sql", "r.citcat", "select position, kind, value from system", "--csv", "-q"}),
              HasSubstr("1,translation dropped,131072"));
  good({"replay", "r.citcat", "-o", "r.ktz"});
  EXPECT_THAT(good({"cat", "r.ktz", "--format", "text"}),
              HasSubstr("translation_dropped 00020000\n"));
  good({"slim", "r.citcat", "-o", "lean.citcat"});
  EXPECT_EQ(
      nlohmann::json::parse(good({"info", "lean.citcat", "--json"})).at("dropped_translations"), 1);
}

TEST_F(DroppedTranslation, IsNoPartOfOtherArchives) {
  import("r.citcat", "");
  EXPECT_THAT(good({"info", "r.citcat", "--json"}), Not(HasSubstr("dropped_translations")));
}

TEST_F(DroppedTranslation, HasItsPlace) {
  for (const char* const wrong :
       {",DROPPED,0,0,0,00020000,0\n", "1,DROPPED,0,0,x,00020000,0\n", "1,DROPPED,0,0,0,,0\n",
        "1,DROPPED,0,0,0,00020000\n", "1,DROPPED,0,0,0,00020000,0\n0,DROPPED,0,0,0,00020000,0\n"}) {
    write_file(file("wrong.csv"), std::string("icount,op,eip,eax,ebx,ecx,edx\n") + wrong);
    import("r.citcat", "");
    const auto refused = run({"import", "c.csv", "--initial-state", "state.json", "--internal",
                              "wrong.csv", "-o", "wrong.citcat"});
    EXPECT_NE(refused.exit_code, 0) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("wrong.csv")) << wrong;
  }
}

}  // namespace
}  // namespace citcat::testing
