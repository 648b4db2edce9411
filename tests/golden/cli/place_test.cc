// Interrupts placed and registers recovered by command, on the sample of the IBM 5150.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFolder = CITCAT_SOURCE_DIR "/samples/ibm5150/";

class Place : public CitcatTest {
 protected:
  /// As if nobody had probed the queue status: no instruction is counted.
  void import_uncounted() const {
    good({"import", sample("area5150.sr"), "--cpu", "8088", "--channels",
          sample("no_queue_status.json"), "--initial-state", sample("state.json"), "--start",
          "interrupt:0", "-o", "r.citcat"});
  }
  static std::string sample(const std::string& name) { return kFolder + name; }
};

TEST_F(Place, FindsEveryInterruptOfTheSampleAndSaysSo) {
  import_uncounted();
  EXPECT_EQ(good({"place", "r.citcat"}), "9 interrupts, 9 unique\n");
}

TEST_F(Place, KeepsWhatItFoundInTheArchive) {
  import_uncounted();
  const auto first = nlohmann::json::parse(good({"place", "r.citcat", "--json"}));
  EXPECT_EQ(first.at("interrupts"), 9);
  EXPECT_EQ(first.at("placed").at("unique"), 9);
  EXPECT_EQ(first.at("placed").at("none"), 0);
  EXPECT_TRUE(first.at("placed").at("events").empty());
  EXPECT_EQ(first.at("searched"), true);
  EXPECT_GT(first.at("instructions"), 0);
  const auto second = nlohmann::json::parse(good({"place", "r.citcat", "--json"}));
  EXPECT_EQ(second.at("searched"), false);
  EXPECT_EQ(second.at("placed"), first.at("placed"));
  const auto verdict = nlohmann::json::parse(good({"verify", "r.citcat", "--json"}));
  EXPECT_EQ(verdict.at("verdict"), "match");
  EXPECT_EQ(verdict.at("placement").at("unique"), 9);
}

TEST_F(Place, SaysOfCountedInterruptsThatTheyAre) {
  import_sample("r.citcat");
  EXPECT_EQ(good({"place", "r.citcat"}), "9 interrupts, all counted\n");
}

TEST_F(Place, RecoversTheRegistersAndSaysWhereEachComesFrom) {
  const auto imported =
      nlohmann::json::parse(good({"import", sample("area5150.sr"), "--cpu", "8088", "--start",
                                  "interrupt:1", "--recover-state", "-o", "r.citcat", "--json"}));
  std::map<std::string, std::string> sources;
  std::map<std::string, unsigned> values;
  for (const auto& r : imported.at("recovered")) {
    sources[r.at("register")] = r.at("source");
    values[r.at("register")] = r.at("value");
    EXPECT_EQ(r.at("transaction").is_null(), r.at("source") == "free") << r.dump();
  }
  for (const char* name : {"cs", "ip", "flags"}) EXPECT_EQ(sources.at(name), "frame");
  for (const char* name : {"ax", "cx", "si", "ds", "es"}) EXPECT_EQ(sources.at(name), "saved");
  for (const char* name : {"bx", "dx", "bp"}) EXPECT_EQ(sources.at(name), "free");
  EXPECT_EQ(sources.at("di"), "solved");
  EXPECT_EQ(values.at("ip"), 0x15bu);
  EXPECT_EQ(values.at("di"), 0xeca2u);
  EXPECT_EQ(nlohmann::json::parse(good({"verify", "r.citcat", "--json"})).at("verdict"), "match");
}

TEST_F(Place, NeedsToKnowAtWhichInterruptToRecover) {
  const ProcessResult result =
      run({"import", sample("area5150.sr"), "--cpu", "8088", "--recover-state", "-o", "r.citcat"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--start interrupt:N"));
}

/// The sample as if its timer were on the processor's chip: no interrupt is acknowledged, nothing
/// counted.
class PlaceOnChip : public Place {
 protected:
  void SetUp() override {
    Place::SetUp();
    good({"convert", sample("area5150.sr"), "--cpu", "8088", "--channels",
          sample("no_queue_status.json"), "--to", "record-csv", "-o", "all.csv"});
    std::ifstream all(file("all.csv"));
    std::ofstream hidden(file("hidden.csv"));
    for (std::string line; std::getline(all, line);) {
      const bool acknowledge = line.find(",INTA,") != std::string::npos;
      // The first interrupt is where the recording begins, with the state before it.
      if (acknowledge && start_.empty()) start_ = line.substr(0, line.find(','));
      if (!acknowledge) hidden << line << '\n';
    }
  }
  ProcessResult import_with(const std::string& marker) const {
    return run({"import", "hidden.csv", "--initial-state", sample("state.json"), "--start",
                "transaction:" + start_, "--on-chip", marker, "-o", "r.citcat"});
  }
  /// Where each interrupt is, as `dump` shows it.
  std::vector<std::uint64_t> positions(const std::string& recording) const {
    std::vector<std::uint64_t> found;
    std::istringstream lines(good({"dump", recording, "--format", "json"}));
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      const std::string kind = event.at("event");
      if (kind == "interrupt" || kind == "on-chip interrupt")
        found.push_back(event.at("instruction"));
    }
    return found;
  }

 private:
  std::string start_;
};

TEST_F(PlaceOnChip, FindsTheTimersInterruptsByTheEndOfInterruptCommand) {
  ASSERT_EQ(import_with("8=io-write:20:20").exit_code, 0);
  EXPECT_EQ(good({"place", "r.citcat"}), "9 interrupts, 9 unique\n");
  import_sample("counted.citcat");
  EXPECT_EQ(positions("r.citcat"), positions("counted.citcat"));
  EXPECT_EQ(nlohmann::json::parse(good({"verify", "r.citcat", "--json"})).at("verdict"), "match");
}

TEST_F(PlaceOnChip, FindsThemByTheReadOfTheirTableEntry) {
  ASSERT_EQ(import_with("8=mem-read:20").exit_code, 0);
  EXPECT_EQ(good({"place", "r.citcat"}), "9 interrupts, 9 unique\n");
}

TEST_F(PlaceOnChip, SaysThatNothingFitsWhenTheVectorIsAnother) {
  ASSERT_EQ(import_with("9=io-write:20:20").exit_code, 0);
  const ProcessResult result = run({"place", "r.citcat"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("9 interrupts, 9 not placed"));
  EXPECT_NE(run({"verify", "r.citcat"}).exit_code, 0);
}

TEST_F(PlaceOnChip, RefusesWhatIsNoMarker) {
  const ProcessResult result = import_with("8=io-read:20");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("VECTOR=io-write:PORT"));
}

}  // namespace
}  // namespace citcat::testing
