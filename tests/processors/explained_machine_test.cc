// Faults in the capture of a bus that two processors share, explained by name and place: something
// that the other one did, an invalidation that the capture lacks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/io/input.h"
#include "golden/process.h"
#include "processors/made_machine.h"
#include "processors/sample_records.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"

namespace citcat::test {
namespace {

using Json = nlohmann::json;
using citcat::testing::ProcessResult;
using citcat::testing::run_citcat;
using citcat::testing::write_file;

constexpr std::uint8_t kReads = 2, kInvalidates = 12, kStartsAnew = 19;

class ExplainedMachine : public ::testing::Test {
 protected:
  ProcessResult run(const std::vector<std::string>& arguments) const {
    return run_citcat(arguments, folder_.path());
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  /// Imports what is there as two.citcat.
  void import(const std::vector<std::string>& internal, const std::string& cpu) const {
    std::vector<std::string> arguments{"import", "bus.bin", "-o", "two.citcat", "-q"};
    for (int p = 0; p < 2; ++p) {
      arguments.emplace_back("--internal");
      arguments.push_back(std::to_string(p) + "=" + internal.at(static_cast<std::size_t>(p)));
    }
    if (!cpu.empty()) arguments.insert(arguments.end(), {"--cpu", cpu});
    const ProcessResult result = run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  void import_made(const MadeMachine& made) const {
    write_file(path("bus.bin"), made.headerless());
    for (int p = 0; p < 2; ++p)
      write_file(path("side." + std::to_string(p) + ".csv"), made.internal[p]);
    import({"side.0.csv", "side.1.csv"}, "p6");
  }
  static bool has_data() { return !shared_file("smp").empty(); }
  static MachineData data() { return MachineData(shared_file("smp") + "/smp_spin64_tiny"); }
  void import_damaged(const std::vector<MonitorRecord>& all) const { import_damaged(all, data()); }
  void import_damaged(const std::vector<MonitorRecord>& all, const MachineData& data) const {
    import_capture(all, {data.path("side.0.csv.zst"), data.path("side.1.csv.zst")});
  }
  void import_capture(const std::vector<MonitorRecord>& all,
                      const std::vector<std::string>& internal) const {
    std::string bytes(all.size() * sizeof(MonitorRecord), '\0');
    std::memcpy(bytes.data(), all.data(), bytes.size());
    write_file(path("bus.bin"), bytes);
    import(internal, "");
  }
  void import_damaged_sample(const std::vector<MonitorRecord>& all) const {
    const std::string sides = CITCAT_SOURCE_DIR "/samples/two-processors/queue.side.";
    import_capture(all, {sides + "0.csv", sides + "1.csv"});
  }
  Json explained() const {
    const ProcessResult result = run({"explain", "two.citcat", "--json"});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    return result.out.empty() ? Json::object() : Json::parse(result.out);
  }
  static Json first_cause(const Json& explanation) {
    const Json& causes = explanation.at("machine").at("causes");
    EXPECT_FALSE(causes.empty()) << explanation.dump(1);
    return causes.empty() ? Json::object() : causes.at(0);
  }
  /// It repairs all that is wrong, and names the processor, the instruction and the address of
  /// `record`.
  static void expect_repair(const Json& cause, const char* name, const MonitorRecord& record) {
    EXPECT_EQ(cause.value("cause", ""), name);
    EXPECT_EQ(cause.value("processor", 9), record.burst >> 4);
    EXPECT_EQ(cause.value("instruction", std::uint64_t{0}), record.icount);
    EXPECT_EQ(cause.value("address", 0u), record.addr);
    EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
  }

 private:
  citcat::testing::TemporaryFolder folder_;
};

/// Places in smp_spin64_tiny, form C, with what stands there.
constexpr std::size_t kInvalidation = 9982, kFill = 7091;

TEST_F(ExplainedMachine, AnInvalidationThatTheCaptureLacksIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  std::vector<MonitorRecord> all = data().records('C');
  const MonitorRecord dropped = all.at(kInvalidation);
  ASSERT_EQ(dropped.type, kInvalidates);
  all.erase(all.begin() + kInvalidation);
  import_damaged(all);
  const Json cause = first_cause(explained());
  expect_repair(cause, "missing_invalidation", dropped);
}

TEST_F(ExplainedMachine, WhatAnotherProcessorDidIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  std::vector<MonitorRecord> all = data().records('C');
  const MonitorRecord fill = all.at(kFill);
  ASSERT_EQ(fill.type, kReads);
  ASSERT_EQ(fill.burst, 0);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < kFill; ++i)
    if (all[i].burst >> 4 == 1) count = all[i].icount;
  for (std::size_t i = kFill; i < kFill + 2; ++i) {
    all[i].burst = static_cast<std::uint8_t>(all[i].burst | 1 << 4);
    all[i].icount = count;
  }
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "wrong_processor");
  EXPECT_EQ(cause.value("processor", 9), 1);
  EXPECT_EQ(cause.value("to_processor", 9), 0);
  EXPECT_EQ(cause.value("to_instruction", std::uint64_t{0}), fill.icount);
  EXPECT_EQ(cause.value("address", 0u), fill.addr);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

/// A fill by processor 0, and behind it the invalidation of that line by processor 1.
constexpr std::size_t kFillBeforeInvalidation = 8628;

TEST_F(ExplainedMachine, WhatCameTheOtherWayRoundIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  std::vector<MonitorRecord> all = data().records('C');
  const auto fill = all.begin() + kFillBeforeInvalidation, invalidation = fill + 2;
  ASSERT_EQ(fill->type, kReads);
  ASSERT_EQ(invalidation->type, kInvalidates);
  ASSERT_EQ(fill->addr, invalidation->addr);
  ASSERT_NE(fill->burst >> 4, invalidation->burst >> 4);
  std::vector<std::uint32_t> clocks;
  for (auto its = fill; its <= invalidation; ++its) clocks.push_back(its->clk);
  std::rotate(fill, invalidation, invalidation + 1);
  for (std::size_t i = 0; i < clocks.size(); ++i)
    fill[static_cast<std::ptrdiff_t>(i)].clk = clocks[i];
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "wrong_order");
  EXPECT_EQ(cause.value("address", 0u), fill->addr);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

/// Trials change registers of the beginning too, and no replay begins with every value of CR4.
TEST_F(ExplainedMachine, WhatNoReplayTakesIsATrialThatFailed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  const MachineData spin32(shared_file("smp") + "/smp_spin32_tiny");
  std::vector<MonitorRecord> all = spin32.records('C');
  const auto sipi = std::find_if(all.begin(), all.end(),
                                 [](const MonitorRecord& r) { return r.type == kStartsAnew; });
  ASSERT_NE(sipi, all.end());
  sipi->data[0] ^= 1;
  import_damaged(all, spin32);
  const ProcessResult result = run({"explain", "two.citcat", "--json", "--time", "30"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("verdict"), "diverged");
}

TEST_F(ExplainedMachine, AnInvalidationOfAnotherLineIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  std::vector<MonitorRecord> all = data().records('C');
  MonitorRecord& moved = all.at(kInvalidation);
  moved.addr += 64;
  import_damaged(all);
  const Json cause = first_cause(explained());
  expect_repair(cause, "wrong_line", moved);
}

TEST_F(ExplainedMachine, AnInvalidationTooManyIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  std::vector<MonitorRecord> all = data().records('C');
  // Clocks lie apart: one more fits in between.
  const std::size_t at = kInvalidation + 1;
  MonitorRecord more = all.at(kInvalidation);
  ASSERT_GT(all.at(at).clk, more.clk + 1);
  ++more.clk;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), more);
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "extra_invalidation");
  EXPECT_EQ(cause.value("address", 0u), more.addr);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

TEST_F(ExplainedMachine, AFillThatWasSharedIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::uint8_t kHit = 64;
  std::vector<MonitorRecord> all = data().records('C');
  const MonitorRecord fill = all.at(kFillBeforeInvalidation);
  ASSERT_NE(fill.flags & kHit, 0);
  for (std::size_t i = kFillBeforeInvalidation; i < kFillBeforeInvalidation + 2; ++i)
    all[i].flags = static_cast<std::uint8_t>(all[i].flags & ~kHit);
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "wrong_fill");
  EXPECT_EQ(cause.value("instruction", std::uint64_t{0}), fill.icount);
  EXPECT_EQ(cause.value("address", 0u), fill.addr);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

/// What the processor of the first record from `begin` to `end` does there comes behind the rest.
/// Clocks stay where they are.
void delay(std::vector<MonitorRecord>& all, std::size_t begin, std::size_t end) {
  std::vector<std::uint32_t> clocks;
  for (std::size_t i = begin; i < end; ++i) clocks.push_back(all[i].clk);
  const int late = all[begin].burst >> 4;
  std::stable_partition(all.begin() + static_cast<std::ptrdiff_t>(begin),
                        all.begin() + static_cast<std::ptrdiff_t>(end),
                        [late](const MonitorRecord& r) { return r.burst >> 4 != late; });
  for (std::size_t i = begin; i < end; ++i) all[i].clk = clocks[i - begin];
}

/// In form A: a locked write by processor 1, and the next locked read there by the other one.
constexpr std::size_t kLockedWrite = 36839, kNextLock = 36851;

TEST_F(ExplainedMachine, ALockedWriteThatCameBehindAnotherLockIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::uint8_t kLock = 128;
  std::vector<MonitorRecord> all = data().records('A');
  ASSERT_NE(all.at(kLockedWrite).flags & kLock, 0);
  ASSERT_EQ(all.at(kNextLock).addr, all.at(kLockedWrite).addr);
  delay(all, kLockedWrite, kNextLock + 1);
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "wrong_order");
  EXPECT_EQ(cause.value("processor", 9), 0);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

TEST_F(ExplainedMachine, AnInterruptThatTheCaptureLacksIsFoundByItsProcessor) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::size_t kInterrupt = 72373;
  constexpr std::uint8_t kFromApic = 16;
  std::vector<MonitorRecord> all = data().records('A');
  const MonitorRecord dropped = all.at(kInterrupt);
  ASSERT_EQ(dropped.type, kFromApic);
  all.erase(all.begin() + kInterrupt);
  import_damaged(all);
  const Json explanation = explained();
  EXPECT_TRUE(explanation.value("repaired", false)) << explanation.dump(1);
  const Json& its = explanation.at("processors").at(1).at("rounds").at(0).at("causes").at(0);
  EXPECT_EQ(its.value("cause", ""), "missing_interrupt");
  EXPECT_THAT(its.value("text", ""),
              ::testing::HasSubstr("instruction " + std::to_string(dropped.icount)));
}

/// The capture lacks a message between processors, has another one in its place, or has it twice.
TEST_F(ExplainedMachine, AMessageIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::uint8_t kMessage = 17;
  const std::vector<MonitorRecord> whole = data().records('C');
  // The first messages start the other processor, so this takes a later one.
  constexpr std::size_t kBegin = 25'000;
  const auto sent = std::find_if(whole.begin() + kBegin, whole.end(), [](const MonitorRecord& r) {
    return r.type == kMessage && r.burst >> 4 < 2;
  });
  ASSERT_NE(sent, whole.end());
  const auto at = sent - whole.begin();
  for (const char* const name : {"missing_message", "wrong_message", "extra_message"}) {
    SCOPED_TRACE(name);
    std::vector<MonitorRecord> all = whole;
    const std::string kind = name;
    if (kind == "missing_message") all.erase(all.begin() + at);
    if (kind == "wrong_message") all[static_cast<std::size_t>(at)].data[0] ^= 4;
    if (kind == "extra_message") all.insert(all.begin() + at, *sent);
    import_damaged(all);
    const Json cause = first_cause(explained());
    EXPECT_EQ(cause.value("cause", ""), kind) << cause.dump(1);
    EXPECT_EQ(cause.value("processor", 9), sent->burst >> 4);
    if (kind != "extra_message") {
      EXPECT_LE(cause.value("instruction", std::uint64_t{0}), sent->icount);
    }
    EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
  }
}

/// One bit of a fill, which no instruction then uses.
TEST_F(ExplainedMachine, AReadThatWasCapturedWronglyIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::size_t kWrongFill = 19375, kByte = 4;
  std::vector<MonitorRecord> all = data().records('C');
  MonitorRecord& read = all.at(kWrongFill);
  ASSERT_EQ(read.type, kReads);
  read.data[kByte] ^= 4;
  import_damaged(all);
  const Json cause = first_cause(explained());
  EXPECT_EQ(cause.value("cause", ""), "captured_read");
  EXPECT_EQ(cause.value("processor", 9), read.burst >> 4);
  EXPECT_EQ(cause.value("instruction", std::uint64_t{0}), read.icount);
  EXPECT_EQ(cause.value("address", 0u), read.addr + kByte);
  EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
}

TEST_F(ExplainedMachine, AWriteBackThatTheCaptureLacksIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  constexpr std::uint8_t kWrites = 3, kSnooped = 8;
  const std::vector<MonitorRecord> whole = data().records('C');
  for (const std::size_t at : {std::size_t{9089}, std::size_t{9266}, std::size_t{9540}}) {
    SCOPED_TRACE(at);
    const MonitorRecord lost = whole.at(at);
    ASSERT_EQ(lost.type, kWrites);
    ASSERT_NE(lost.flags & kSnooped, 0);
    std::vector<MonitorRecord> all = whole;
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    all.erase(first, first + 2);
    import_damaged(all);
    const Json cause = first_cause(explained());
    EXPECT_EQ(cause.value("cause", ""), "missing_write_back");
    EXPECT_EQ(cause.value("processor", 9), lost.burst >> 4);
    EXPECT_EQ(cause.value("address", 0u), lost.addr);
    EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
  }
}

/// The replay sends the message, and the row that says so is lost. In the second case the processor
/// reads the register before the bus shows the message; in the third it accesses its APIC no more.
TEST_F(ExplainedMachine, ACommandThatTheInternalValuesLackIsNamed) {
  if (!has_data()) GTEST_SKIP() << "without the shared captures";
  const struct {
    const char* capture;
    int processor;
    std::uint64_t instruction;
    const char* row;
  } all[] = {
      {"spin64_tiny", 0, 4679,
       "4679,APICWR,0000000000008236,00004609,00000004,fee00300,00000000\n"},
      {"spin64_tiny", 1, 16555,
       "16555,APICWR,00000000000084aa,00004040,00000004,fee00300,00000000\n"},
      {"lin64_threads", 1, 104311,
       "104311,APICWR,ffffffff810656ca,000008fb,00000004,fee00300,00000000\n"},
  };
  for (const auto& each : all) {
    SCOPED_TRACE(each.row);
    const MachineData data(shared_file("smp") + "/smp_" + each.capture);
    const std::string name = "side." + std::to_string(each.processor) + ".csv";
    const auto bytes = read_whole_file(data.path(name + ".zst"), std::uint64_t{1} << 30);
    std::string rows(bytes.begin(), bytes.end());
    const std::size_t at = rows.find(each.row);
    ASSERT_NE(at, std::string::npos);
    write_file(path(name), rows.erase(at, std::strlen(each.row)));
    std::vector<std::string> internal{data.path("side.0.csv.zst"), data.path("side.1.csv.zst")};
    internal.at(static_cast<std::size_t>(each.processor)) = path(name);
    import_capture(data.records('C'), internal);
    const Json cause = first_cause(explained());
    EXPECT_EQ(cause.value("cause", ""), "missing_command");
    EXPECT_EQ(cause.value("processor", 9), each.processor);
    EXPECT_EQ(cause.value("instruction", std::uint64_t{0}), each.instruction);
    EXPECT_EQ(cause.value("address", 0u), 0xfee00300u);
    EXPECT_TRUE(cause.value("repairs", false)) << cause.dump(1);
  }
}

/// The last invalidation of the sample: the line never leaves the cache, and nobody asks for it.
TEST_F(ExplainedMachine, AStoreToASharedLineThatNothingShowsAgainIsNamed) {
  constexpr std::size_t kLastInvalidation = 3567;
  std::vector<MonitorRecord> all = sample_records();
  const MonitorRecord dropped = all.at(kLastInvalidation);
  ASSERT_EQ(dropped.type, kInvalidates);
  all.erase(all.begin() + kLastInvalidation);
  import_damaged_sample(all);
  for (const char* const jobs : {"1", "2"}) {
    const ProcessResult verified = run({"verify", "two.citcat", "--json", "--jobs", jobs});
    EXPECT_EQ(verified.exit_code, 1) << verified.err;
    const Json bus = Json::parse(verified.out).at("shared_bus");
    EXPECT_EQ(bus.at("contradictions"), 1) << bus.dump(1);
    EXPECT_EQ(bus.at("first").at("processor"), dropped.burst >> 4);
    EXPECT_EQ(bus.at("first").at("instruction"), dropped.icount);
    EXPECT_EQ(bus.at("first").at("address"), dropped.addr);
  }
  expect_repair(first_cause(explained()), "missing_invalidation", dropped);
}

/// If the capture ends right before it, the invalidation may have come after the end.
TEST_F(ExplainedMachine, AStoreAtACutIsNoContradiction) {
  std::vector<MonitorRecord> all = sample_records();
  std::size_t cuts = 0;
  for (std::size_t cut = all.size() / 2; cut < all.size(); cut += 1 + cut % 197) {
    import_damaged_sample({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(cut)});
    const ProcessResult verified = run({"verify", "two.citcat", "--json"});
    EXPECT_EQ(verified.exit_code, 0) << "cut at " << cut << ": " << verified.out << verified.err;
    ++cuts;
  }
  EXPECT_GT(cuts, 5u);
}

TEST_F(ExplainedMachine, OneThatAgreesHasNothingToExplain) {
  import_made(made_machine({3, 1}));
  const ProcessResult result = run({"explain", "two.citcat"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "match: nothing to explain\n");
}

}  // namespace
}  // namespace citcat::test
