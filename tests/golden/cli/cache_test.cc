// `verify --cache` on captures made by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

/// mov al,[10h]; mov al,[14h]; mov al,[20h]; mov [20h],al; hlt, from 1000:0 with DS 2000h.
constexpr const char* kCode = "0,CODE_RD,00010000,16,a01000a01400a02000a22000f4909090,L\n";
constexpr const char* kFirst = "0,MEM_RD,00020010,16,00000000000000000000000000000000,L\n";
constexpr const char* kSecond = "2,MEM_RD,00020020,16,00000000000000000000000000000000,L\n";
constexpr const char* kStore = "3,MEM_WR,00020020,1,00,-\n";
constexpr const char* kHalt = "4,HALT,00000000,1,00,-\n";

/// mov al,[10h]; wbinvd; mov al,[10h]; hlt: after the flush the line must be filled again, and is
/// not.
constexpr const char* kMissing =
    "0,CODE_RD,00010000,16,a010000f09a01000f490909090909090,L\n"
    "0,MEM_RD,00020010,16,00000000000000000000000000000000,L\n"
    "1,FLUSH,00000000,1,02,-\n"
    "2,CODE_RD,00010000,16,a010000f09a01000f490909090909090,L\n"
    "3,HALT,00000000,1,00,-\n";

class CacheCommand : public CitcatTest {
 protected:
  void import(const std::string& header, const std::string& capture) const {
    write_file(file("c.csv"), "#citcat-capture 1 cpu=486 bus=4 " + header +
                                  "\nicount,type,addr,size,data,flags\n" + capture);
    write_file(file("state.json"),
               R"({"cpu":"486","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0",)"
               R"("ds":"0x2000","ss":"0x2000","esp":"0x100"}})");
    good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"});
  }
  nlohmann::json cache(const std::vector<std::string>& options) const {
    std::vector<std::string> arguments = {"verify", "r.citcat", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return nlohmann::json::parse(run(arguments).out).at("cache");
  }
  static constexpr const char* kI486 = "cache=write-through line=16";
};

TEST_F(CacheCommand, AReportShowsWhatVerifySaysOfTheCache) {
  import(kI486, kMissing);
  const auto reported = [this](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"report", "r.citcat", "-o", "r.html"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    run(arguments);
    const std::string page = read_file(file("r.html"));
    const std::string begin = "<script type=\"application/json\" id=\"data-figures\">";
    const std::size_t from = page.find(begin) + begin.size();
    const auto data = nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
    return data.at("runs").at(0).at("verify").at("cache");
  };
  EXPECT_TRUE(reported({}).is_null());
  EXPECT_EQ(reported({"--cache"}), cache({"--cache"}));
  EXPECT_FALSE(reported({"--cache"}).at("first_disagreement").is_null());
  EXPECT_EQ(reported({"--cache-model", "i486-plru"}).at("model"), "i486-plru");
  EXPECT_THAT(run({"report", "r.citcat:0-2", "-o", "r.html", "--cache"}).err,
              HasSubstr("a cache is followed over a whole run"));
}

TEST_F(CacheCommand, FindsThatEveryLineIsFilledWhenItMisses) {
  import(kI486, std::string(kCode) + kFirst + kSecond + kStore + kHalt);
  const nlohmann::json found = cache({"--cache"});
  EXPECT_EQ(found.at("model"), "i486");
  EXPECT_EQ(found.at("fills").at("predicted"), 3);
  EXPECT_EQ(found.at("fills").at("captured"), 3);
  EXPECT_EQ(found.at("fills").at("agree"), 3);
  EXPECT_TRUE(found.at("first_disagreement").is_null());
  EXPECT_EQ(run({"verify", "r.citcat", "--exact-cache"}).exit_code, 0);
  EXPECT_THAT(good({"verify", "r.citcat", "--cache"}),
              HasSubstr("3 predicted, 3 captured, 3 agree"));
}

TEST_F(CacheCommand, NamesTheFillThatTheCaptureDoesNotShow) {
  import(kI486, kMissing);
  const nlohmann::json found = cache({"--cache"});
  EXPECT_EQ(found.at("fills").at("predicted"), 4);
  EXPECT_EQ(found.at("fills").at("captured"), 3);
  EXPECT_EQ(found.at("fills").at("agree"), 3);
  const nlohmann::json& first = found.at("first_disagreement");
  EXPECT_EQ(first.at("position"), 2);
  EXPECT_EQ(first.at("address"), "00020010");
  EXPECT_EQ(first.at("captured"), false);
  EXPECT_TRUE(first.at("transaction").is_null());
}

TEST_F(CacheCommand, NamesTheFillThatTheModelDoesNotPredict) {
  const std::string again = "1,MEM_RD,00020010,16,00000000000000000000000000000000,L\n";
  import(kI486, std::string(kCode) + kFirst + again + kSecond + kStore + kHalt);
  const nlohmann::json found = cache({"--cache"});
  EXPECT_EQ(found.at("fills").at("captured"), 4);
  EXPECT_EQ(found.at("fills").at("agree"), 3);
  EXPECT_EQ(found.at("refills"), 1);
  EXPECT_EQ(found.at("first_disagreement").at("transaction"), 2);
  EXPECT_EQ(found.at("first_disagreement").at("captured"), true);
}

TEST_F(CacheCommand, CallsItADivergenceOnlyWhereTheModelIsExact) {
  import(kI486, kMissing);
  EXPECT_EQ(run({"verify", "r.citcat", "--cache"}).exit_code, 0);
  const ProcessResult exact = run({"verify", "r.citcat", "--exact-cache", "--json"});
  EXPECT_NE(exact.exit_code, 0);
  const auto json = nlohmann::json::parse(exact.out);
  EXPECT_EQ(json.at("verdict"), "diverged");
  EXPECT_EQ(json.at("divergence").at("position"), 2);
}

TEST_F(CacheCommand, ExpectsStoresToFillLinesInAWriteBackCache) {
  // mov [10h],al; hlt.
  import("cache=write-back line=16",
         "0,CODE_RD,00010000,16,a21000f4909090909090909090909090,L\n"
         "0,MEM_RD,00020010,16,00000000000000000000000000000000,LR\n"
         "1,HALT,00000000,1,00,-\n");
  const nlohmann::json found = cache({"--cache"});
  EXPECT_EQ(found.at("model"), "write-back");
  EXPECT_EQ(found.at("fills").at("agree"), 2);
  EXPECT_TRUE(found.at("first_disagreement").is_null());
}

TEST_F(CacheCommand, HasNothingToSayWithoutACache) {
  import("cache=none",
         "0,CODE_RD,00010000,4,a01000f4,-\n0,MEM_RD,00020010,1,00,-\n1,HALT,00000000,1,00,-\n");
  EXPECT_TRUE(cache({"--cache"}).is_null());
  EXPECT_TRUE(cache({}).is_null());
}

TEST_F(CacheCommand, NamesTheModelsThereAre) {
  import(kI486, std::string(kCode) + kFirst + kSecond + kStore + kHalt);
  const ProcessResult result = run({"verify", "r.citcat", "--cache-model", "k6"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("pentium-plru"));
}

}  // namespace
}  // namespace citcat::testing
