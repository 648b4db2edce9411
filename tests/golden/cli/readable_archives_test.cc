// Whatever an importer takes: an archive that was written can be read. `info` and `check` succeed,
// and `verify` has a verdict, of every recording in it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/samples.h"
#include "unit/capture/moo_builder.h"

namespace citcat::testing {
namespace {

namespace fs = std::filesystem;

class ReadableArchives : public CitcatTest {
 protected:
  /// Imports `capture`; where that succeeds, looks at what it wrote.
  void import(const std::string& capture, std::vector<std::string> options) {
    std::vector<std::string> arguments = {"import", capture, "-o", "r.citcat"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    fs::remove(file("r.citcat"));
    const ProcessResult result = run(arguments);
    ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 2 || result.exit_code == 3)
        << capture << ": " << result.err;
    EXPECT_EQ(fs::exists(file("r.citcat")), result.exit_code == 0) << capture;
    if (result.exit_code != 0) return;
    ++written_;
    const std::string info = good({"info", "r.citcat", "--json"});
    const ProcessResult check = run({"check", "r.citcat"});
    EXPECT_EQ(check.exit_code, 0) << capture << ": " << check.out << check.err;
    const auto recordings = nlohmann::json::parse(info).value("recordings", std::size_t{1});
    for (const std::size_t number : {std::size_t{0}, recordings / 2, recordings - 1}) {
      const std::string name = "r.citcat@" + std::to_string(number);
      EXPECT_EQ(run({"info", name}).exit_code, 0) << capture << " " << name;
      const ProcessResult verdict = run({"verify", name});
      EXPECT_TRUE(verdict.exit_code == 0 || verdict.exit_code == 1)
          << capture << " " << name << ": " << verdict.err;
    }
  }
  /// Archives that were there to be looked at.
  unsigned written_ = 0;
};

TEST_F(ReadableArchives, OfWhatIsConvertedToEachFormat) {
  const auto formats = nlohmann::json::parse(good({"import", "--list-formats", "--json"}));
  unsigned converted = 0;
  for (const auto& format : formats.at("formats")) {
    if (!format.at("written").get<bool>()) continue;
    const std::string name = format.at("format");
    SCOPED_TRACE(name);
    good({"convert", kArea5150, "--cpu", "8088", "--until", "20000", "--to", name, "-o", "c"});
    import("c", {"--format", name, "--cpu", "8088", "--initial-state",
                 CITCAT_SOURCE_DIR "/samples/ibm5150/state.json"});
    ++converted;
  }
  EXPECT_GE(converted, 6u);
  EXPECT_GE(written_, converted - 1);  // one format has no data
}

// The corpora of the fuzzers: small files of every format, sound and damaged.
TEST_F(ReadableArchives, OfSmallAndDamagedFilesOfEachFormat) {
  write_file(file("state.json"), R"({"cpu":"386","registers":{"cs":"0","eip":"0"}})");
  unsigned files = 0;
  for (const char* reader :
       {"bus_records", "byu", "dsview", "hp_listing", "lac", "logic2", "moo", "native", "ols",
        "record_csv", "saleae", "sample_csv", "sigrok", "vcd"}) {
    std::vector<fs::path> corpus;
    for (const auto& entry :
         fs::directory_iterator(fs::path(CITCAT_SOURCE_DIR "/tests/fuzz/corpus") / reader)) {
      corpus.push_back(entry.path());
    }
    std::sort(corpus.begin(), corpus.end());
    constexpr std::size_t kOfEach = 5;
    const std::size_t step = corpus.size() / kOfEach + 1;
    for (std::size_t i = 0; i < corpus.size(); i += step, ++files) {
      import(corpus[i].string(), {"--initial-state", "state.json"});
      import(corpus[i].string(), {});
    }
  }
  EXPECT_GE(files, 25u);
  EXPECT_GE(written_, 5u);
}

/// `count` tests of NOP at F000:0100, of which some have no rows at all.
std::vector<test::MooBytes> nops(std::size_t count, bool with_queue, std::size_t without_rows) {
  std::vector<test::MooBytes> tests;
  for (std::size_t i = 0; i < count; ++i) {
    test::MooTestOf8086 one;
    one.cs = 0xf000;
    one.ip = 0x100;
    one.has_queue = one.has_last_queue = with_queue;
    one.queue = with_queue ? test::MooBytes{"\x90\x90\x90"} : "";
    const bool empty = without_rows != 0 && i % without_rows == 0;
    one.last_queue = empty ? "\x90\x90" : "\x90";
    if (!empty) one.rows = {{.queue = 1, .queue_byte = 0x90}, {}, {}};
    tests.push_back(one.bytes());
  }
  return tests;
}

TEST_F(ReadableArchives, OfSingleStepTestsOfEachProcessor) {
  for (const char* processor : {"8088", "8086", "V20 ", "V30 ", "186 ", "C286", "386E"}) {
    for (const bool with_queue : {false, true}) {
      for (const std::size_t without_rows : {0u, 1u, 3u}) {
        constexpr std::size_t kTests = 7;
        SCOPED_TRACE(std::string(processor) + ", every " + std::to_string(without_rows) +
                     "th test without rows");
        write_file(file("t.MOO"),
                   test::moo_file(processor, nops(kTests, with_queue, without_rows)));
        import("t.MOO", {});
      }
    }
  }
  EXPECT_GE(written_, 30u);
}

TEST_F(ReadableArchives, OfManySingleStepTests) {
  write_file(file("t.MOO"), test::moo_file("8086", nops(300, true, 3)));
  import("t.MOO", {});
  EXPECT_EQ(written_, 1u);
}

TEST_F(ReadableArchives, OfTheSilicon) {
  for (const char* name : {"moo/38", "moo/CF", "moo-8086/D3.3", "moo-8086/F7.6", "moo-8086/D9"}) {
    import(std::string(CITCAT_SOURCE_DIR "/samples/") + name + ".MOO.gz", {});
  }
  EXPECT_EQ(written_, 5u);
}

// One recording of the suite's 8086, verified as what it is.
TEST_F(ReadableArchives, OfAn8086AreVerifiedWithItsInstructions) {
  good({"import", CITCAT_SOURCE_DIR "/samples/moo-8086/D3.3.MOO.gz", "-o", "r.citcat"});
  const auto info = nlohmann::json::parse(good({"info", "r.citcat", "--json"}));
  EXPECT_EQ(info.at("cpu"), "8086");
  EXPECT_EQ(info.at("recordings"), 60);
  EXPECT_EQ(info.at("instructions"), 1);
  EXPECT_EQ(info.at("all_recordings").at("instructions"), 60);
  EXPECT_GT(info.at("all_recordings").at("image_bytes"), 60 * 4);
  for (const char* number : {"0", "17", "59"}) {
    const auto verdict =
        nlohmann::json::parse(good({"verify", std::string("r.citcat@") + number, "--json"}));
    EXPECT_EQ(verdict.at("verdict"), "match") << number;
  }
}

// Whoever throws the evidence away keeps the runs.
TEST_F(ReadableArchives, OfSeveralRecordingsAreSlimmedWhole) {
  write_file(file("t.MOO"), test::moo_file("8086", nops(5, true, 0)));
  good({"import", "t.MOO", "-o", "r.citcat"});
  good({"slim", "r.citcat", "-o", "s.citcat"});
  const auto info = nlohmann::json::parse(good({"info", "s.citcat", "--json"}));
  EXPECT_EQ(info.at("recordings"), 5);
  for (const char* name : {"s.citcat", "s.citcat@0", "s.citcat@4"}) good({"verify", name});
  good({"slim", "r.citcat@3", "-o", "one.citcat"});
  EXPECT_EQ(nlohmann::json::parse(good({"info", "one.citcat", "--json"})).at("recordings"), 1);
}

TEST_F(ReadableArchives, OfSeveralRecordingsAreShownOnOnePageAsFarAsItGoes) {
  const auto shown = [&](std::size_t recordings) {
    write_file(file("t.MOO"), test::moo_file("8086", nops(recordings, true, 0)));
    good({"import", "t.MOO", "-o", "r.citcat"});
    const ProcessResult result = run({"view", "r.citcat", "--export", "page.html"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return std::pair{read_file(file("page.html")), result.err};
  };
  const auto [three, said_of_three] = shown(3);
  EXPECT_NE(three.find(R"("runs":["r.citcat@0","r.citcat@1","r.citcat@2"])"), std::string::npos);
  EXPECT_EQ(said_of_three.find("holds"), std::string::npos) << said_of_three;
  const auto [many, said_of_many] = shown(18);
  EXPECT_NE(many.find(R"("r.citcat@15"])"), std::string::npos);
  EXPECT_NE(
      said_of_many.find("holds 18 recordings: the page shows the first 16; r.citcat@16 is the "
                        "next one"),
      std::string::npos)
      << said_of_many;
}

TEST_F(ReadableArchives, OfSeveralRecordingsHaveOneProcessorEach) {
  write_file(file("t.MOO"), test::moo_file("8086", nops(3, true, 0)));
  good({"import", "t.MOO", "-o", "r.citcat"});
  EXPECT_EQ(good({"sql", "r.citcat@2", "--csv", "select distinct processor from instructions"}),
            "processor\n0\n");
  EXPECT_EQ(good({"cat", "r.citcat@2", "--processor", "0"}), good({"cat", "r.citcat@2"}));
  const ProcessResult other = run({"cat", "r.citcat@2", "--processor", "2"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("r.citcat@2 has 1 processor, number 0"), std::string::npos) << other.err;
}

TEST_F(ReadableArchives, OfSeveralRecordingsAreToldAsSuchWhereOneIsTaken) {
  write_file(file("t.MOO"), test::moo_file("8086", nops(3, true, 0)));
  good({"import", "t.MOO", "-o", "r.citcat"});
  for (const std::vector<std::string>& command : {std::vector<std::string>{"cat", "r.citcat"},
                                                  {"dump", "r.citcat"},
                                                  {"explain", "r.citcat"},
                                                  {"sql", "r.citcat", "select 1"},
                                                  {"analyze", "r.citcat", "--tool", "count"}}) {
    EXPECT_NE(run(command).err.find("holds 3 recordings: this is the first"), std::string::npos)
        << command[0];
    std::vector<std::string> named = command;
    named[1] += "@1";
    EXPECT_EQ(run(named).err.find("recordings:"), std::string::npos) << command[0];
  }
}

}  // namespace
}  // namespace citcat::testing
