#include "capture/import/import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/io/error.h"
#include "unit/capture/import/dump_writes.h"
#include "unit/capture/machine_data.h"
#include "unit/capture/shared_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

constexpr std::uint32_t kLogBase = 0xfef00000;

BusTransaction transaction(BusOp op, std::uint32_t address, std::uint8_t value) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = 1;
  t.data[0] = value;
  return t;
}

BusTransaction counted(BusTransaction t, std::uint64_t instruction, std::uint32_t iteration = 0) {
  t.flags |= kPositionKnown;
  t.position = {instruction, iteration};
  return t;
}

BusTransaction clocked(BusTransaction t, std::uint64_t clock) {
  t.flags |= kClockKnown;
  t.clock = clock;
  return t;
}

Recording import_transactions(std::vector<BusTransaction> transactions,
                              const ImportOptions& options = {}) {
  VectorCapture capture(std::move(transactions));
  return import_from(capture, options, nullptr);
}

/// Traffic of `n` instructions with an interrupt before every tenth.
std::vector<BusTransaction> traffic(std::uint64_t first, std::uint64_t n) {
  std::vector<BusTransaction> all;
  for (std::uint64_t i = first; i < first + n; ++i) {
    if (i % 10 == 0) all.push_back(counted(transaction(BusOp::interrupt_acknowledge, 0, 8), i));
    const auto address = static_cast<std::uint32_t>(0x1000 + i * 8);
    all.push_back(counted(transaction(BusOp::code_read, address, 0x90), i));
    all.push_back(counted(transaction(BusOp::io_read, 0x60, 1), i));
  }
  return all;
}

std::vector<BusTransaction> joined(std::initializer_list<std::vector<BusTransaction>> parts) {
  std::vector<BusTransaction> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Where, ReadsWhatItPrints) {
  for (const char* text : {"interrupt:0", "transaction:17", "sample:5", "instruction:1000000000000",
                           "clock:18446744073709551615"}) {
    EXPECT_EQ(where_text(parse_where(text)), text);
  }
  for (const char* text : {"", "interrupt", "interrupt:", "interrupt:x", "irq:1", "clock:-1",
                           "clock:18446744073709551616"}) {
    EXPECT_THROW(parse_where(text), UsageError) << text;
  }
}

TEST(Import, StartsBehindTheDump) {
  const Recording r = import_transactions(joined({dump_writes(kLogBase), traffic(0, 30)}));
  EXPECT_EQ(r.initial.gpr[kEax], 0x10008u);
  EXPECT_EQ(r.totals.transactions, 63u);
  EXPECT_EQ(r.interrupts.size(), 3u);
  EXPECT_EQ(r.instructions, 30u);
  EXPECT_EQ(r.image.byte_count(), 30u);
}

TEST(Import, DropsWhatStandsBeforeAndAmongTheDump) {
  auto noise = traffic(1000, 50);
  auto dump = dump_writes(kLogBase);
  for (auto& t : dump) t = counted(t, 5000);
  std::mt19937 random(3);
  std::shuffle(dump.begin(), dump.end(), random);
  const auto middle = dump.begin() + 100;
  const Recording r = import_transactions(joined(
      {noise, {dump.begin(), middle}, traffic(4000, 10), {middle, dump.end()}, traffic(5000, 30)}));
  EXPECT_EQ(r.totals.transactions, 63u);
  EXPECT_EQ(r.interrupts.at(1).position, (Position{10, 0}));
  EXPECT_EQ(r.instructions, 30u);
}

TEST(Import, CountsFromBehindADriversLastStore) {
  auto dump = dump_writes(kLogBase);
  for (std::size_t i = 0; i < dump.size(); ++i) dump[i] = counted(dump[i], 700 + i);
  const std::uint64_t next = 700 + dump.size();
  const Recording r = import_transactions(joined({dump, traffic(next, 20)}));
  EXPECT_EQ(r.io_reads[0].position, (Position{0, 0}));
  EXPECT_EQ(r.instructions, 20u);
}

TEST(Import, StartsAtTheDriversMarker) {
  const auto window = [](std::uint32_t offset, std::uint32_t value, std::uint64_t at = 99) {
    return std::vector<BusTransaction>{counted(memory_write(kLogBase + offset, value), at)};
  };
  const auto dumped = joined({window(CITCAT_MEMORY_MAP_COUNT, 0), dump_writes(kLogBase)});
  // The driver may run for long between its dump and the marker.
  const auto whole = joined({dumped, traffic(0, 6000),
                             window(CITCAT_MARK_OFFSET, CITCAT_MARK_START), traffic(100, 20),
                             window(CITCAT_MARK_OFFSET, CITCAT_MARK_STOP, 120), traffic(120, 20)});
  const Recording r = import_transactions(whole);
  EXPECT_EQ(r.instructions, 20u);
  EXPECT_EQ(r.io_reads.size(), 20u);
  EXPECT_THROW(import_transactions(joined({dumped, traffic(0, 6000)})), FormatError);
}

TEST(Import, TakesAnIncompleteDumpWithWarnings) {
  auto dump = dump_writes(kLogBase);
  dump.erase(dump.begin() + 5);
  const Recording r = import_transactions(joined({dump, traffic(0, 5000)}));
  EXPECT_EQ(r.initial.unknown, (std::vector<std::string>{"ebx", "smbase"}));
  EXPECT_EQ(r.warnings.size(), 1u);
  EXPECT_EQ(r.instructions, 5000u);
}

TEST(Import, AsksForTheStateWhenThereIsNoDump) {
  try {
    import_transactions(traffic(0, 100));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("--initial-state"), std::string::npos);
  }
}

class ImportWithState : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    store("state.json", R"({"cpu":"486","registers":{"eip":"0x1000"}})");
    options_.initial_state_path = path("state.json");
  }
  Recording start(const std::string& where, std::vector<BusTransaction> transactions) {
    options_.start = parse_where(where);
    return import_transactions(std::move(transactions), options_);
  }
  ImportOptions options_;
};

TEST_F(ImportWithState, StartsAtAnInterruptAndCountsFromThere) {
  const Recording r = start("interrupt:2", traffic(500, 100));
  EXPECT_EQ(r.interrupts.at(0).position, (Position{0, 0}));
  EXPECT_EQ(r.interrupts.at(0).anchor, BusAnchor{});
  EXPECT_EQ(r.interrupts.at(1).position, (Position{10, 0}));
  EXPECT_EQ(r.io_reads[0].position, (Position{0, 0}));
  EXPECT_EQ(r.instructions, 80u);
}

TEST_F(ImportWithState, StartInsideARepBeginsItAnew) {
  const auto inta = counted(transaction(BusOp::interrupt_acknowledge, 0, 8), 40, 7);
  const Recording r = start("interrupt:0", joined({traffic(31, 9), {inta}, traffic(41, 5)}));
  EXPECT_EQ(r.interrupts.at(0).position, (Position{0, 0}));
  EXPECT_EQ(r.io_reads[0].position, (Position{1, 0}));
}

TEST_F(ImportWithState, StartsAtTransactionsInstructionsAndClocks) {
  std::vector<BusTransaction> all = traffic(1, 100);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = clocked(all[i], 1000 + 3 * i);
  EXPECT_EQ(start("transaction:50", all).totals.transactions, all.size() - 50);
  EXPECT_EQ(start("clock:1150", all).totals.transactions, all.size() - 50);
  EXPECT_EQ(start("sample:1149", all).totals.transactions, all.size() - 50);
  EXPECT_EQ(start("instruction:81", all).instructions, 20u);
  EXPECT_THROW(start("transaction:5000", all), UsageError);
  EXPECT_THROW(start("interrupt:10", all), UsageError);
}

TEST_F(ImportWithState, StopsBeforeThePlace) {
  options_.stop = parse_where("interrupt:5");
  const Recording r = start("interrupt:2", traffic(0, 100));
  EXPECT_EQ(r.interrupts.size(), 3u);
  EXPECT_EQ(r.instructions, 30u);
}

TEST_F(ImportWithState, NeedsTheStateOfAStartThatIsNoDump) {
  options_.initial_state_path.clear();
  EXPECT_THROW(start("interrupt:2", traffic(0, 100)), UsageError);
}

TEST_F(ImportWithState, RefusesTheStateOfAnotherProcessor) {
  options_.capture.cpu = CpuModel::i8088;
  try {
    start("interrupt:2", traffic(0, 100));
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(
        std::string(error.what()).find("processor 8088 (--cpu), found one of the processor 486"),
        std::string::npos)
        << error.what();
  }
}

TEST_F(ImportWithState, DisregardsCountsWhenTold) {
  options_.ignore_counts = IgnoreCounts::all_but_interrupts;
  Recording r = start("interrupt:2", traffic(500, 100));
  EXPECT_EQ(r.interrupts.at(1).position, (Position{10, 0}));
  EXPECT_TRUE(r.interrupts.at(1).position_known);
  EXPECT_FALSE(r.io_reads[0].position_known);
  EXPECT_EQ(r.instructions, std::nullopt);
  options_.ignore_counts = IgnoreCounts::all;
  r = start("interrupt:2", traffic(500, 100));
  EXPECT_FALSE(r.interrupts.at(1).position_known);
  EXPECT_EQ(r.interrupts.at(1).anchor.io, 10u);
}

/// What a monitor without a counter may put into the field.
enum class Filler { zeros, none, stale };

class ImportCounts : public testing::TestWithParam<Filler> {};

TEST_P(ImportCounts, AreBelievedAtInterruptsAlone) {
  std::vector<BusTransaction> all = joined({dump_writes(kLogBase), traffic(1, 3000)});
  std::uint64_t last = 0;
  for (BusTransaction& t : all) {
    if (t.op == BusOp::interrupt_acknowledge) {
      last = t.position.instruction;
      continue;
    }
    t.position = {GetParam() == Filler::stale ? last : 0, 0};
    if (GetParam() == Filler::none) t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
  }
  const Recording r = import_transactions(all);
  ASSERT_EQ(r.interrupts.size(), 300u);
  for (std::size_t i = 0; i < r.interrupts.size(); ++i) {
    EXPECT_TRUE(r.interrupts[i].position_known);
    EXPECT_EQ(r.interrupts[i].position.instruction, 10 * (i + 1));
  }
  EXPECT_EQ(r.instructions, std::nullopt);
  for (const IoRead& io : r.io_reads) EXPECT_FALSE(io.position_known);
}
INSTANTIATE_TEST_SUITE_P(, ImportCounts,
                         testing::Values(Filler::zeros, Filler::none, Filler::stale));

TEST(Import, BelievesNoCountsWhenAllAreZero) {
  std::vector<BusTransaction> all = joined({dump_writes(kLogBase), traffic(1, 3000)});
  for (BusTransaction& t : all) t.position = {};
  const Recording r = import_transactions(all);
  EXPECT_EQ(r.instructions, std::nullopt);
  for (const Interrupt& e : r.interrupts) EXPECT_FALSE(e.position_known);
}

TEST(Import, StopsBelievingCountsThatRunBackwards) {
  const Recording r =
      import_transactions(joined({dump_writes(kLogBase), traffic(0, 2000), traffic(500, 2000)}));
  EXPECT_TRUE(r.io_reads[1999].position_known);
  EXPECT_FALSE(r.io_reads[2000].position_known);
  ASSERT_EQ(r.warnings.size(), 2u);
}

// ---- real captures in other clothes ------------------------------------------------------------

class ImportFile : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
    records_ = data_.records('A');
  }
  std::string write(const std::vector<MonitorRecord>& records) {
    const auto* const bytes = reinterpret_cast<const char*>(records.data());
    store("capture.bin", std::string(bytes, records.size() * sizeof(MonitorRecord)));
    return path("capture.bin");
  }
  MachineData data_{machine_folder() + "/lin_user_tiny"};
  std::vector<MonitorRecord> records_;
};

TEST_F(ImportFile, FindsAnUnmarkedDumpElsewhere) {
  const Recording plain = import_to_memory({write(records_)}, {}).recording;
  std::vector<MonitorRecord> moved = records_;
  for (MonitorRecord& r : moved) {
    if ((r.flags & 16) == 0) continue;
    r.flags &= 0xef;
    if (r.type == 3) r.addr = r.addr - 0xfef00000 + 0x03ff4000;
  }
  const Recording found = import_to_memory({write(moved)}, {}).recording;
  EXPECT_EQ(found.initial, plain.initial);
  EXPECT_EQ(found.totals.transactions, plain.totals.transactions);
  EXPECT_EQ(found.instructions, plain.instructions);
}

TEST_F(ImportFile, CutAnywhereIsReportedOrShorter) {
  const std::size_t bytes = records_.size() * sizeof(MonitorRecord);
  const std::string whole(reinterpret_cast<const char*>(records_.data()), bytes);
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    const std::size_t cut = random() % bytes;
    store("cut.bin", whole.substr(0, cut));
    ImportOptions options;
    options.capture.format = "machine";
    try {
      const Recording r = import_to_memory({path("cut.bin")}, options).recording;
      EXPECT_EQ(cut % sizeof(MonitorRecord), 0u);
      EXPECT_LT(r.totals.transactions, records_.size());
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find("cut.bin:"), std::string::npos) << error.what();
    }
  }
}

TEST_F(ImportFile, NamesTheRecordThatIsDamaged) {
  std::vector<MonitorRecord> damaged = records_;
  damaged[1000].type = 0x77;
  try {
    import_to_memory({write(damaged)}, {});
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("capture.bin:40000: bus record: type"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(ImportFile, KeepsValuesThatCrossNoBus) {
  ImportOptions options;
  options.capture.internal_path = data_.path("side.csv.zst");
  const Recording r = import_to_memory({write(records_)}, options).recording;
  const auto truth = csv_rows(options.capture.internal_path);
  ASSERT_EQ(r.internal_reads.size(), truth.size());
  ASSERT_FALSE(truth.empty());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    EXPECT_EQ(r.internal_reads[i].position.instruction, std::stoull(truth[i][0]));
    EXPECT_EQ(r.internal_reads[i].eax, std::stoul(truth[i][3], nullptr, 16));
    EXPECT_EQ(r.internal_reads[i].edx, std::stoul(truth[i][6], nullptr, 16));
  }
}

TEST(Import, StartsTheRealPcAtItsFirstInterrupt) {
  const std::string capture = shared_file("ibm5150/ibm5150_samples_0_657000.sr");
  if (capture.empty()) GTEST_SKIP() << "shared/data/ibm5150 is not there";
  ImportOptions options;
  options.initial_state_path = shared_file("ibm5150/state.json");
  options.start = parse_where("interrupt:0");
  const Recording r = import_to_memory({capture}, options).recording;
  const auto truth = csv_rows(shared_file("ibm5150/oracle_events.csv.gz"));
  ASSERT_EQ(r.interrupts.size(), truth.size());
  EXPECT_EQ(r.interrupts[0].position, (Position{0, 0}));
  for (const Interrupt& e : r.interrupts) EXPECT_EQ(e.vector, 8);
  EXPECT_TRUE(r.external_writes.empty());
  EXPECT_EQ(r.initial.segment[kCs].selector, 0x1589);
  EXPECT_EQ(r.initial.model, CpuModel::i8088);
  EXPECT_EQ(r.bus.address_mask, 0x7ffffu);
}

}  // namespace
}  // namespace citcat::test
