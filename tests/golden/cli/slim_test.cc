// `slim`: a verified recording without its evidence replays and verifies like the whole one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

class Slim : public CitcatTest {
 protected:
  std::string replayed(const std::string& recording) const {
    good({"replay", recording, "-o", "out.kt"});
    return read_file(file("out.kt"));
  }
};

TEST_F(Slim, KeepsWhatTheSampleNeeds) {
  import_sample("r.citcat");
  good({"slim", "r.citcat", "-o", "s.citcat"});
  good({"verify", "s.citcat"});
  EXPECT_TRUE(replayed("s.citcat") == replayed("r.citcat"));
}

/// mov al,5; shl al,2; pushf; pop bx; mov [bx],al; hlt: the captured processor leaves AF set after
/// SHL, where the manual leaves it undefined, and the address of the last store depends on it.
constexpr const char* kShiftCapture =
    "#citcat-capture 1 cpu=386 cache=none bus=4\n"
    "icount,type,addr,size,data,flags\n"
    "0,CODE_RD,00010000,4,b005c0e0,-\n"
    "1,CODE_RD,00010004,4,029c5b88,-\n"
    "2,MEM_WR,000200fe,2,1600,-\n"
    "3,MEM_RD,000200fe,2,1600,-\n"
    "4,CODE_RD,00010008,4,07f49090,-\n"
    "4,MEM_WR,00020016,1,14,-\n"
    "5,HALT,00000000,1,00,-\n";
constexpr const char* kRealModeState =
    R"({"cpu":"386","registers":{"cs":"0x1000","eip":"0","eflags":"0x2","eax":"0","ebx":"0",)"
    R"("ds":"0x2000","ss":"0x2000","esp":"0x100"}})";

TEST_F(Slim, KeepsResultsThatWereTakenOverFromTheBus) {
  write_file(file("c.csv"), kShiftCapture);
  write_file(file("state.json"), kRealModeState);
  good({"import", "c.csv", "--initial-state", "state.json", "-o", "r.citcat"});
  const auto whole = nlohmann::json::parse(good({"verify", "r.citcat", "--json"}));
  EXPECT_EQ(whole.at("verdict"), "match");
  EXPECT_EQ(whole.at("adopted"), 1);

  const auto slim = nlohmann::json::parse(good({"slim", "r.citcat", "-o", "s.citcat", "--json"}));
  EXPECT_EQ(slim.at("adoptions"), 1);
  good({"verify", "s.citcat"});
  EXPECT_TRUE(replayed("s.citcat") == replayed("r.citcat"));
  EXPECT_TRUE(good({"cat", "s.citcat"}) == good({"cat", "r.citcat"}));
  good({"checkpoint", "s.citcat", "--every", "2"});
  EXPECT_TRUE(good({"cat", "s.citcat", "--from", "4"}) == good({"cat", "r.citcat", "--from", "4"}));

  const ProcessResult strict = run({"replay", "s.citcat", "--strict"});
  EXPECT_EQ(strict.exit_code, 2);
  EXPECT_THAT(strict.err, HasSubstr("adopted from the bus"));
}

/// The order among processors is gone, and with it who wrote what another one reads.
TEST_F(Slim, OfSeveralProcessorsIsAskedForTheSourceOfAValue) {
  const std::string folder = CITCAT_SOURCE_DIR "/samples/two-processors/queue.";
  good({"import", folder + "bin.zst", "--internal", "0=" + folder + "side.0.csv", "--internal",
        "1=" + folder + "side.1.csv", "-o", "r.citcat"});
  good({"slim", "r.citcat", "-o", "s.citcat"});
  const auto steps = [&](const std::string& recording) {
    return nlohmann::json::parse(
        good({"why", recording, "--at", "1:78", "--physical", "--memory", "100b80:4", "--json"}));
  };
  const auto slim = steps("s.citcat"), whole = steps("r.citcat");
  EXPECT_EQ(slim.at("steps"), whole.at("steps"));
  EXPECT_EQ(whole.at("inputs").at(0).at("kind"), "processor");
  EXPECT_EQ(slim.at("inputs").at(0).at("kind"), "dma");
  EXPECT_TRUE(slim.at("inputs").at(0).at("transaction").is_null());
  EXPECT_THAT(slim.at("remarks").dump(), HasSubstr("which processor wrote"));
}

}  // namespace
}  // namespace citcat::testing
