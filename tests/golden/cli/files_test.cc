// `info`, `dump` and `import` on files made by hand: what must be alike, and what is refused. What
// they print is in transcripts/dump.txt.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "golden/process.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;

// MOV AL, [1234h] / OUT 80h, AL / an interrupt / a DMA over what was read.
constexpr const char* kOutputCapture =
    "seq,icount,rep,clk,type,addr,size,be,flags,burst,data\n"
    "0,0,0,0,CODE_RD,000ffff0,4,f,-,0,a03412e6\n"
    "1,0,0,2,CODE_RD,000ffff4,1,1,-,0,80\n"
    "2,0,0,4,MEM_RD,00001234,1,1,-,0,5a\n"
    "3,1,0,6,IO_WR,00000080,1,1,-,0,5a\n"
    "4,2,0,8,INTA,00000000,1,0,-,0,30\n"
    "5,2,3,9,MEM_RD,00001234,1,1,U,0,5b\n"
    "6,3,0,11,IO_RD,00000060,1,1,-,0,1c\n";

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    write("bus.csv", kOutputCapture);
    write("state.json", R"({"cpu":"386","registers":{"eip":"0xfff0","eax":"0x77"}})");
  }
  void write(const std::string& name, const std::string& content) const {
    write_file(folder_.path() / name, content);
  }
  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }
  std::string good(const std::vector<std::string>& arguments) const {
    const ProcessResult result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  nlohmann::json import() const {
    return nlohmann::json::parse(
        good({"import", "bus.csv", "-o", "bus.citcat", "--initial-state", "state.json", "--json"}));
  }
  TemporaryFolder folder_;
};

TEST_F(Files, ACaptureDumpedAsCsvIsTheSameCapture) {
  const std::string first = good({"dump", "bus.csv", "--format", "csv"});
  EXPECT_EQ(first, kOutputCapture);
  write("again.csv", first);
  EXPECT_EQ(good({"dump", "again.csv", "--format", "csv"}), first);
}

TEST_F(Files, ARangeThatEndsBeforeItBeginsIsAUsageError) {
  EXPECT_EQ(run({"dump", "bus.csv", "--from", "3", "--to", "2"}).exit_code, 2);
}

TEST_F(Files, EvidenceHasWhatReadsReturnedThoughTheArchiveDoesNotKeepIt) {
  import();
  EXPECT_EQ(good({"dump", "bus.citcat", "--evidence", "--format", "csv"}),
            good({"dump", "bus.csv", "--format", "csv"}));
}

TEST_F(Files, EventsAsCsvAreATableWithAHeader) {
  import();
  std::istringstream lines(good({"dump", "bus.citcat", "--format", "csv"}));
  std::string header, line;
  ASSERT_TRUE(std::getline(lines, header));
  EXPECT_THAT(header, ::testing::StartsWith("event,transaction,instruction,"));
  const auto commas = std::count(header.begin(), header.end(), ',');
  std::size_t events = 0;
  for (; std::getline(lines, line); ++events) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), commas) << line;
    EXPECT_THAT(line, ::testing::Not(HasSubstr("=")));
  }
  std::istringstream objects(good({"dump", "bus.citcat", "--json"}));
  while (std::getline(objects, line)) --events;
  EXPECT_EQ(events, 0U) << "as many as in JSON";
}

TEST_F(Files, AnUnfinishedCaptureIsTakenUpToItsLastWholeRecord) {
  import();
  good({"convert", "bus.csv", "--to", "native", "-o", "whole.bin"});
  const std::string native = read_file(folder_.path() / "whole.bin");
  // Headerless records, as a monitor sends them: what stands between the header and the last
  // record.
  constexpr std::size_t kRecord = 40;
  const std::size_t records = 6;
  const std::string cut =
      native.substr(native.size() - kRecord - 7 * kRecord, records * kRecord + 17);
  write("boot.bin.partial", cut);
  const auto info = nlohmann::json::parse(good({"info", "boot.bin.partial", "--json"}));
  EXPECT_EQ(info.at("transactions"), records);
  EXPECT_EQ(info.at("interrupted"), true);
  EXPECT_THAT(info.at("warnings").dump(), HasSubstr("last whole record, number 6"));
  write("boot.bin", cut);
  const ProcessResult whole = run({"info", "boot.bin"});
  EXPECT_EQ(whole.exit_code, 3);
  EXPECT_THAT(whole.err, HasSubstr("boot.bin:240: the capture ends inside a record"));
}

TEST_F(Files, InfoTellsKindsApart) {
  import();
  const auto kind = [&](const std::string& name) {
    return nlohmann::json::parse(good({"info", name, "--json"})).at("kind");
  };
  EXPECT_EQ(kind("bus.csv"), "capture");
  EXPECT_EQ(kind("bus.citcat"), "recording");
  write("one.kt", std::string("\0\x10\0\0\1\x90\0\0", 8));
  EXPECT_EQ(kind("one.kt"), "KT trace");
  write("poem.txt", "no bus was seen here\n");
  EXPECT_EQ(run({"info", "poem.txt"}).exit_code, 3);
  EXPECT_EQ(run({"info", "absent"}).exit_code, 4);
}

TEST_F(Files, AnInterruptedCaptureAndItsRecordingSaySo) {
  const std::string whole = good({"info", "bus.csv"});
  EXPECT_THAT(whole, HasSubstr("end                  capture end\n"));
  EXPECT_THAT(whole, HasSubstr("interrupted          false\n"));
  write("bus.csv", std::string(kOutputCapture) + "7,,,,CUT,00000000,1,0,-,0,02\n");
  EXPECT_THAT(good({"dump", "bus.csv"}), HasSubstr("\ninterrupted: storage full\n"));
  EXPECT_THAT(good({"dump", "bus.csv", "--format", "csv"}), HasSubstr(",CUT,"));
  good({"convert", "bus.csv", "--to", "record-csv", "-o", "again.csv"});
  const auto imported = import();
  EXPECT_EQ(imported.at("transactions"), 7);
  EXPECT_EQ(imported.at("interrupted"), true);
  for (const char* file : {"bus.csv", "again.csv", "bus.citcat"}) {
    const auto info = nlohmann::json::parse(good({"info", file, "--json"}));
    EXPECT_EQ(info.at("interrupted"), true) << file;
    EXPECT_EQ(info.at("end"), "storage full") << file;
    EXPECT_THAT(info.at("warnings").dump(), HasSubstr("interrupted")) << file;
  }
}

TEST_F(Files, WrongOptionsAreUsageErrorsAndBadCapturesAreNot) {
  EXPECT_EQ(run({"import", "bus.csv", "-o", "x.citcat", "--start", "elsewhere:3"}).exit_code, 2);
  EXPECT_EQ(run({"import", "bus.csv", "-o", "x.citcat", "--initial-state", "state.json", "--start",
                 "interrupt:9"})
                .exit_code,
            2);
  EXPECT_EQ(run({"import", "bus.csv", "-o", "x.citcat"}).exit_code, 3) << "no state is known";
  write("bad.csv", "type,addr,size,data\nMEM_RD,1000,1,zz\n");
  const ProcessResult bad =
      run({"import", "bad.csv", "-o", "x.citcat", "--initial-state", "state.json"});
  EXPECT_EQ(bad.exit_code, 3);
  EXPECT_THAT(bad.err, HasSubstr("bad.csv:2: data:"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "x.citcat"));
}

}  // namespace
}  // namespace citcat::testing
