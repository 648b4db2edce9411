// The samples of a real capture as other programs save them: by the program, each gives the
// transactions and the recording that the sigrok session gives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "golden/process.h"
#include "golden/samples.h"
#include "unit/capture/sample_writers.h"

namespace citcat::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kRenderedSamples = 20000;

/// Rows of the CSV form without the clock, which not every format has in samples.
std::vector<std::string> without_clock(const std::string& csv) {
  std::vector<std::string> rows;
  std::istringstream in(csv);
  for (std::string row; std::getline(in, row);) {
    std::size_t begin = 0;
    for (int column = 0; column < 3; ++column) begin = row.find(',', begin) + 1;
    rows.push_back(row.erase(begin, row.find(',', begin) - begin));
  }
  return rows;
}

class SampleRenderings : public ::testing::Test {
 protected:
  void SetUp() override {
    samples_ = test::read_samples(kArea5150, kRenderedSamples);
    test::write_sigrok(samples_, file("session.sr"));
    write_file(file("state.json"), R"({"cpu": "8088", "registers": {"cs": 0, "ip": 0}})");
    expected_ = import({"session.sr"}, "session");
    ASSERT_GT(expected_.transactions.size(), 1000U);
  }

  /// What the program says of a capture.
  struct Imported {
    std::vector<std::string> transactions, evidence;
    std::string events;     ///< interrupts, external writes, port reads
    std::string recording;  ///< the archive
    std::string clocks;     ///< the transactions with them
  };
  Imported import(const std::vector<std::string>& capture, const std::string& name) const {
    Imported imported;
    imported.clocks = run("convert", capture, {"--to", "record-csv", "-o", "-", "-q"});
    imported.transactions = without_clock(imported.clocks);
    const std::string archive = name + ".citcat";
    run("import", capture, {"--no-provenance", "--initial-state", "state.json", "-o", archive});
    imported.evidence = without_clock(run("dump", {archive}, {"--evidence", "--format", "csv"}));
    imported.events = run("dump", {archive}, {});
    imported.recording = read_file(file(archive));
    return imported;
  }
  std::string run(const std::string& command, std::vector<std::string> arguments,
                  const std::vector<std::string>& more) const {
    arguments.insert(arguments.begin(), command);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run_citcat(arguments, folder_.path());
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.err;
    return result.out;
  }
  void expect_same(const Imported& found) const {
    EXPECT_EQ(found.transactions, expected_.transactions);
    EXPECT_EQ(found.evidence, expected_.evidence);
    EXPECT_EQ(found.events, expected_.events);
  }
  /// Where the format numbers its samples, or has their rate.
  void expect_same_bytes(const Imported& found) const {
    expect_same(found);
    EXPECT_EQ(found.clocks, expected_.clocks);
    EXPECT_TRUE(found.recording == expected_.recording);
  }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  test::Samples samples_;
  Imported expected_;
};

TEST_F(SampleRenderings, DsviewCapture) {
  test::write_dsview(samples_, file("a.dsl"));
  expect_same_bytes(import({"a.dsl"}, "a"));
}

TEST_F(SampleRenderings, DsviewCsv) {
  test::write_dsview_csv(samples_, file("a.csv"));
  expect_same_bytes(import({"a.csv"}, "a"));
}

TEST_F(SampleRenderings, SaleaeBinaryOfBothVersions) {
  test::write_saleae(samples_, file("v0"), 0);
  expect_same(import({"v0"}, "a"));
  test::write_saleae(samples_, file("v1"), 1);
  expect_same_bytes(import({"v1"}, "b"));
}

TEST_F(SampleRenderings, ColumnsThatAFileDescribes) {
  std::string text, columns;
  for (const std::string& name : samples_.names) {
    columns += (columns.empty() ? "" : ",") + std::string(R"({"name":")") + name + R"("})";
  }
  for (std::size_t s = 0; s < samples_.count(); ++s) {
    for (std::size_t c = 0; c < samples_.names.size(); ++c)
      text += samples_.level(s, c) ? "1 " : "0 ";
    text += '\n';
  }
  write_file(file("a.txt"), text);
  write_file(file("a.json"), R"({"sample_rate":"10 MHz","columns":[)" + columns + "]}");
  expect_same_bytes(import({"a.txt", "--format", "columns:a.json"}, "a"));
}

TEST_F(SampleRenderings, ThatTheyShowNoBusCycleIsSaid) {
  for (const char* const status : {"S0", "S1", "S2", "QS0", "QS1"}) {
    for (std::size_t s = 0; s < samples_.count(); ++s)
      samples_.set(s, samples_.channel(status), status[0] == 'S');
  }
  test::write_sigrok(samples_, file("idle.sr"));
  const ProcessResult result = run_citcat(
      {"import", "idle.sr", "--initial-state", "state.json", "-o", "idle.citcat"}, folder_.path());
  EXPECT_NE(result.err.find("the capture shows no transaction"), std::string::npos) << result.err;
}

TEST_F(SampleRenderings, Logic2) {
  test::write_logic2(samples_, file("v1.sal"), 1);
  expect_same_bytes(import({"v1.sal"}, "a"));
  test::write_logic2(samples_, file("v3.sal"), 3);
  expect_same_bytes(import({"v3.sal"}, "b"));
}

TEST_F(SampleRenderings, SaleaeCsv) {
  test::write_saleae_csv(samples_, file("a.csv"));
  expect_same(import({"a.csv"}, "a"));
}

TEST_F(SampleRenderings, LogicSniffer) {
  test::write_ols(samples_, file("a.ols"));
  expect_same_bytes(import({"a.ols"}, "a"));
}

TEST_F(SampleRenderings, HpListingWithAMap) {
  test::write_hp_listing(samples_, file("machine1"), file("map.json"));
  expect_same(import({"machine1", "--channels", "map.json"}, "a"));
}

TEST_F(SampleRenderings, WhatTheProgramConvertsItself) {
  for (const char* target : {"vcd", "samples-csv", "ols"}) {
    const std::string name = std::string("to-") + target;
    run("convert", {"session.sr"}, {"--to", target, "-o", name, "-q"});
    expect_same_bytes(import({name}, name));
  }
}

// ---- listings: one line a state
// ------------------------------------------------------------------

struct Listing {
  const char* name;
  const char* header;
  const char* row;  ///< for an address, data and a status; '$' stands before what is put in
  const char* map;
};

/// Fills in $A, $D and $S.
std::string filled(std::string row, unsigned number, const char* address, const char* data,
                   const char* status) {
  const std::string count = std::to_string(number);
  for (const auto& [mark, value] : {std::pair("$N", count.c_str()), std::pair("$A", address),
                                    std::pair("$D", data), std::pair("$S", status)}) {
    const std::size_t at = row.find(mark);
    if (at != std::string::npos) row.replace(at, 2, value);
  }
  return row;
}

class Listings : public ::testing::TestWithParam<Listing> {};

// The first status looks like a level. 8088: S2 S1 S0 of a port read 1, of a port write 2, of a
// fetch 4, of a memory read 5, of a write 6, of an acknowledge 0, passive 7 (iAPX 88 Book, table
// 2-6).
TEST_P(Listings, GiveTheTransactionsOfTheirRows) {
  const Listing& listing = GetParam();
  TemporaryFolder folder;
  std::string text = listing.header;
  unsigned number = 0;
  const auto add = [&](const char* address, const char* data, const char* status) {
    text += filled(listing.row, number++, address, data, status);
  };
  add("00060", "1C", "1");
  add("FFFF0", "EA", "4");
  add("FFFF1", "5B", "4");
  add("00400", "34", "5");
  add("00000", "00", "7");
  add("00400", "12", "6");
  add("00080", "5A", "2");
  add("00000", "00", "0");
  add("00000", "08", "0");
  write_file(folder.path() / "listing.csv", text);
  write_file(folder.path() / "map.json", listing.map);
  write_file(folder.path() / "state.json", R"({"cpu": "8088", "registers": {"cs": 0, "ip": 0}})");
  const auto run = [&](std::vector<std::string> arguments) {
    const ProcessResult result = run_citcat(arguments, folder.path());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  run({"import", "listing.csv", "--channels", "map.json", "--initial-state", "state.json", "-o",
       "a.citcat"});
  std::istringstream rows(run(
      {"convert", "listing.csv", "--channels", "map.json", "--to", "record-csv", "-o", "-", "-q"}));
  std::vector<std::string> found;
  std::string row;
  while (std::getline(rows, row) && row.substr(0, 4) != "seq,") {
  }
  while (std::getline(rows, row)) {
    std::vector<std::string> fields;
    std::istringstream in(row);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    ASSERT_EQ(fields.size(), 11U) << row;
    found.push_back(fields[4] + " " + fields[5] + " " + fields[10]);
  }
  EXPECT_EQ(found, (std::vector<std::string>{"IO_RD 00000060 1c", "CODE_RD 000ffff0 ea",
                                             "CODE_RD 000ffff1 5b", "MEM_RD 00000400 34",
                                             "MEM_WR 00000400 12", "IO_WR 00000080 5a",
                                             "INTA 00000000 08"}));
  EXPECT_THAT(run({"dump", "a.citcat"}), HasSubstr("port 60 size 1 value 1c"));
  const std::string dumped = run({"dump", "listing.csv", "--channels", "map.json", "--from", "4",
                                  "--to", "6", "--format", "csv"});
  EXPECT_THAT(dumped, HasSubstr(",MEM_WR,00000400,"));
  EXPECT_THAT(dumped, HasSubstr(",IO_WR,00000080,"));
  EXPECT_THAT(dumped, Not(HasSubstr("INTA")));
  const auto info = nlohmann::json::parse(
      run({"info", "listing.csv", "--channels", "map.json", "--cpu", "8088", "--json"}));
  EXPECT_EQ(info.at("transactions"), 7);
  EXPECT_EQ(info.at("cpu"), "8088");
}

constexpr const char* kLabels =
    R"({"bus": "8088-states", "lanes": {"A": "ADDR", "D": "DATA"},
        "pins": {"S0": "STAT0", "S1": "STAT1", "S2": "STAT2"}})";

INSTANTIATE_TEST_SUITE_P(
    Makers, Listings,
    ::testing::Values(Listing{"Generic", "address,data,status\n", "$A,$D,$S\n",
                              R"({"bus": "8088-states", "lanes": {"A": "address", "D": "data"},
                    "pins": {"S0": "status0", "S1": "status1", "S2": "status2"}})"},
                      Listing{"Agilent", "State Number,ADDR,DATA,STAT,Mnemonic,Time\n",
                              "$N,$A,$D,$S,\"MOV AX,BX\",200 ns\n", kLabels},
                      Listing{"Tektronix", "Sample,ADDR,DATA,STAT,Timestamp\n",
                              "$N,\"$A\",\"$D\",\"$S\",1.250 us\n", kLabels},
                      Listing{"PrintedTable",
                              "Sample  ADDR   DATA  STAT  Mnemonic   Timestamp\n"
                              "------  -----  ----  ----  ---------  ---------\n",
                              "$N  $A  $D  $S  MOV AX,BX  1.250 us\n", kLabels}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace citcat::testing
