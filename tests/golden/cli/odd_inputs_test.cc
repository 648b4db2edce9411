// Inputs that are damaged or have odd names: what is said of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

using OddInputs = CitcatTest;

TEST_F(OddInputs, ADamagedTraceIsNamedInTheMessage) {
  import_sample("r.citcat");
  good({"replay", "r.citcat", "-o", "r.ktz", "-q"});
  const std::string whole = read_file(file("r.ktz"));
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(file("damaged.ktz"), damaged);
    const ProcessResult result = run({"cat", "damaged.ktz"});
    if (result.exit_code == 0) continue;  // of the index, which cat does without
    EXPECT_EQ(result.exit_code, 3) << at;
    EXPECT_THAT(result.err, HasSubstr("damaged.ktz")) << at;
  }
}

TEST_F(OddInputs, ADamagedSessionIsBadInput) {
  const std::string whole = read_file(CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr");
  for (const std::size_t size : {whole.size() / 2, whole.size() - 10, whole.size() - 1}) {
    write_file(file("cut.dsl"), whole.substr(0, size));
    EXPECT_EQ(
        run({"import", "cut.dsl", "--format", "dsview", "--cpu", "8088", "-o", "x"}).exit_code, 3)
        << size;
  }
}

TEST_F(OddInputs, NamesThatAreNoUtf8AreNoErrorOfOurs) {
  import_sample("r.citcat");
  const std::string name = "caf\xe9";
  std::filesystem::copy_file(CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr", file(name + ".sr"));
  good({"import", name + ".sr", "--cpu", "8088", "--initial-state",
        CITCAT_SOURCE_DIR "/samples/ibm5150/state.json", "--start", "interrupt:0", "-o",
        name + ".citcat"});
  for (const char* command : {"info", "verify", "check"}) {
    good({command, name + ".citcat"});
    good({command, name + ".citcat", "--json"});
  }
  good({"replay", name + ".citcat", "-o", name + ".kt", "--shard", "1/1"});
  good({"explain", name + ".citcat", "-o", name + ".json", "--json"});
}

TEST_F(OddInputs, ASessionTakesNoLineWithoutEndAndGoesOnBehindAMissingFile) {
  import_sample("r.citcat");
  const auto session = [this](const std::string& commands) {
    return run_shell(commands + " | timeout 60 \"$CITCAT\" session r.citcat", file(""));
  };
  const ProcessResult endless = session("cat /dev/zero");
  EXPECT_EQ(endless.exit_code, 2);
  EXPECT_THAT(endless.err, HasSubstr("found a longer line"));
  const ProcessResult missing = session("printf 'mdl nowhere.mdl\ngo 5\nwhere\n'");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("nowhere.mdl"));
  EXPECT_EQ(missing.out, "instruction 5\n");
}

TEST_F(OddInputs, ASessionEndsWhereItsRecordingIsDamaged) {
  import_sample("r.citcat");
  std::string bytes = read_file(file("r.citcat"));
  bytes[1000] ^= 1;  // of the evidence, which is read as the run comes there
  write_file(file("r.citcat"), bytes);
  const ProcessResult damaged =
      run_shell("printf 'go end\nwhere\n' | \"$CITCAT\" session r.citcat", file(""));
  EXPECT_EQ(damaged.exit_code, 3) << damaged.err;
  EXPECT_EQ(damaged.out, "");
}

TEST_F(OddInputs, CheckpointsCountTheirOwnBytes) {
  import_sample("r.citcat");
  // An append that was interrupted is longer than what comes in its place.
  write_file(file("r.citcat"), read_file(file("r.citcat")) + std::string(1 << 20, 'x'));
  const auto json =
      nlohmann::json::parse(good({"checkpoint", "r.citcat", "--every", "100", "--json"}));
  EXPECT_GT(json.at("bytes"), 0);
  EXPECT_LT(json.at("bytes"), 1 << 20);
}

}  // namespace
}  // namespace citcat::testing
