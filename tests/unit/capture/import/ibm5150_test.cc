// The capture of a real IBM 5150 against rows that were decoded from it by other means: every bus
// cycle, every instruction start and every interrupt must be equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "capture/bus/source.h"
#include "capture/import/sample_formats.h"
#include "formats/io/error.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/capture/whole_capture.h"

namespace citcat {
namespace {

constexpr char kSession[] = "ibm5150/ibm5150_samples_0_657000.sr";

// The oracle was made from a longer capture: cycles that end beyond this one are not ours.
constexpr std::uint64_t kLeadingSamples = 657000;

std::vector<std::vector<std::string>> oracle_cycles() {
  auto rows = test::csv_rows(test::shared_file("ibm5150/oracle_cycles.csv.gz"));
  while (!rows.empty() && std::stoull(rows.back()[2]) >= kLeadingSamples) rows.pop_back();
  return rows;
}

std::string hex5(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "%05x", value);
  return text;
}

class Ibm5150 : public testing::Test {
 protected:
  void SetUp() override {
    path_ = test::shared_file(kSession);
    if (path_.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  }
  std::string path_;
};

TEST_F(Ibm5150, EveryBusCycleEqualsTheOracle) {
  const std::map<BusOp, std::string> kinds = {{BusOp::code_read, "CODE"},
                                              {BusOp::data_read, "MEMR"},
                                              {BusOp::data_write, "MEMW"},
                                              {BusOp::io_read, "IOR"},
                                              {BusOp::io_write, "IOW"},
                                              {BusOp::halt, "HALT"},
                                              {BusOp::interrupt_acknowledge, "INTA"}};
  std::vector<PinCycle> cycles;
  const auto capture = open_capture_with_cycles(
      "sigrok", {path_}, {}, [&](const PinCycle& cycle) { cycles.push_back(cycle); });
  test::read_all(*capture);
  const auto rows = oracle_cycles();
  ASSERT_EQ(cycles.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PinCycle& c = cycles[i];
    const auto& row = rows[i];
    ASSERT_EQ(std::to_string(c.begin), row[1]) << "cycle " << i;
    ASSERT_EQ(std::to_string(c.end), row[2]) << "cycle " << i;
    ASSERT_EQ(kinds.at(c.op), row[3]) << "cycle " << i;
    ASSERT_EQ(hex5(c.address.low32()), row[4]) << "cycle " << i;
    ASSERT_EQ(hex5(static_cast<std::uint32_t>(c.data)).substr(3), row[5]) << "cycle " << i;
    ASSERT_EQ(std::to_string(c.wait_clocks), row[6]) << "cycle " << i;
    ASSERT_EQ(c.interrupt_request ? "1" : "0", row[7]) << "cycle " << i;
  }
}

TEST_F(Ibm5150, EveryTransactionIsACycleOfTheOracleInOrder) {
  const auto transactions = test::read_all(*open_capture({path_}, {}));
  const auto rows = oracle_cycles();
  std::size_t row = 0;
  std::uint64_t last_clock = 0;
  for (const BusTransaction& t : transactions) {
    ASSERT_GE(t.clock, last_clock);
    last_clock = t.clock;
    if (t.op == BusOp::instruction_start) continue;
    ASSERT_LT(row, rows.size());
    if (t.op == BusOp::interrupt_acknowledge) {
      ASSERT_EQ(rows[row][3], "INTA");
      ++row;  // the second cycle carries the vector
      ASSERT_EQ(hex5(t.data[0]).substr(3), rows[row][5]);
    } else {
      ASSERT_EQ(hex5(t.address.low32()), rows[row][4]);
      ASSERT_EQ(hex5(t.data[0]).substr(3), rows[row][5]);
      ASSERT_EQ(t.size, 1);
    }
    ++row;
  }
  EXPECT_EQ(row, rows.size());
}

TEST_F(Ibm5150, EveryInstructionStartEqualsTheOracle) {
  const auto transactions = test::read_all(*open_capture({path_}, {}));
  const auto rows = test::csv_rows(test::shared_file("ibm5150/oracle_instr_qs.csv.gz"));
  std::size_t row = 0;
  for (const BusTransaction& t : transactions) {
    if (t.op != BusOp::instruction_start) continue;
    ASSERT_LT(row, rows.size());
    std::string bytes;
    for (const std::uint8_t byte : t.bytes()) bytes += hex5(byte).substr(3);
    ASSERT_EQ(std::to_string(t.clock), rows[row][1]) << "row " << row;
    ASSERT_EQ(hex5(t.address.low32()), rows[row][2]) << "row " << row;
    ASSERT_EQ(bytes, rows[row][3]) << "row " << row;
    ASSERT_EQ(t.has(kPrefix) ? "1" : "0", rows[row][4]) << "row " << row;
    ++row;
  }
  EXPECT_EQ(row, rows.size());
}

TEST_F(Ibm5150, InterruptsStandWhereTheOracleCountsThem) {
  const auto transactions = test::read_all(*open_capture({path_}, {}));
  const auto rows = test::csv_rows(test::shared_file("ibm5150/oracle_events.csv.gz"));
  std::size_t row = 0;
  std::uint64_t broken_off = 0;
  for (const BusTransaction& t : transactions) {
    if (t.op != BusOp::interrupt_acknowledge) continue;
    ASSERT_LT(row, rows.size());
    ASSERT_EQ(std::to_string(t.clock), rows[row][1]);
    ASSERT_EQ(hex5(t.data[0]).substr(3), rows[row][2]);
    ASSERT_TRUE(t.has(kPositionKnown));
    // The oracle counts instructions begun; an interrupted REP MOVSW is begun and not completed,
    // and is begun again afterwards.
    const bool in_rep = t.position.iteration != 0;
    if (in_rep) ++broken_off;
    EXPECT_EQ(t.position.instruction + broken_off, std::stoull(rows[row][4])) << "event " << row;
    EXPECT_EQ(in_rep, rows[row][6] == "a5") << "event " << row;
    ++row;
  }
  EXPECT_EQ(row, rows.size());
}

TEST_F(Ibm5150, MissingAddressLineIsDeclared) {
  const auto capture = open_capture({path_}, {});
  EXPECT_EQ(capture->info().address_mask, 0x7ffffu);
  EXPECT_EQ(capture->info().bus.address_mask, 0x7ffffu);
  EXPECT_EQ(capture->info().cpu, CpuModel::i8088);
  EXPECT_TRUE(capture->info().has_positions);
  const auto& warnings = capture->info().warnings;
  EXPECT_TRUE(std::any_of(warnings.begin(), warnings.end(), [](const std::string& line) {
    return line.find("A19") != std::string::npos;
  }));
}

}  // namespace
}  // namespace citcat
