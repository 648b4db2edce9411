#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <sstream>
#include <string>

#include "capture/import/bus_record.h"
#include "capture/import/import.h"
#include "capture/import/record_csv.h"
#include "capture/inspect/convert.h"
#include "capture/inspect/explain.h"
#include "capture/inspect/lint.h"
#include "formats/io/error.h"
#include "tests/unit/capture/shared_data.h"
#include "unit/capture/whole_capture.h"
#include "unit/temporary_folder.h"

namespace citcat {
namespace {

class CaptureTools : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    session_ = test::shared_file("logic-analyser-samples/ibm5150_first110k.sr");
    if (session_.empty()) GTEST_SKIP() << "no shared data: set CITCAT_SHARED";
  }

  std::string convert(const char* target, const char* name) {
    convert_capture({session_}, {}, target, std::make_unique<FileSink>(path(name)));
    return path(name);
  }
  /// A bus-record file: `rows` after the header of the CSV form.
  std::string records(const std::string& rows) {
    store("records.csv", "type,addr,size,data\n" + rows);
    return path("records.csv");
  }

  std::string session_;
};

class SampleTargets : public CaptureTools,
                      public testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(SampleTargets, DecodeToTheSameTransactions) {
  const auto expected = test::read_all(session_);
  const auto found = test::read_all(convert(GetParam().first, GetParam().second));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].op, expected[i].op) << i;
    ASSERT_EQ(found[i].address, expected[i].address) << i;
    ASSERT_EQ(found[i].data, expected[i].data) << i;
    ASSERT_EQ(found[i].clock, expected[i].clock) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SampleTargets,
                         testing::Values(std::make_pair("vcd", "c.vcd"),
                                         std::make_pair("samples-csv", "c.csv"),
                                         std::make_pair("ols", "c.ols")));

TEST_P(SampleTargets, APartKeepsItsSamples) {
  const auto [target, name] = GetParam();
  ConvertOptions part;
  part.range.from = 20000;
  part.range.to = 30000;
  convert_capture({session_}, {}, target, std::make_unique<FileSink>(path(name)), part);
  // Tables have no numbers: their first row is sample 0.
  const std::uint64_t moved = std::string(target) == "samples-csv" ? part.range.from : 0;
  std::vector<BusTransaction> expected;
  constexpr std::uint64_t kSettled =
      200;  // the first cycles were cut, the last ones are not complete
  for (const BusTransaction& t : test::read_all(session_)) {
    if (t.clock >= part.range.from + kSettled && t.clock + kSettled < part.range.to)
      expected.push_back(t);
  }
  std::vector<BusTransaction> found;
  for (BusTransaction& t : test::read_all(path(name))) {
    t.clock += moved;
    if (t.clock >= part.range.from + kSettled && t.clock + kSettled < part.range.to)
      found.push_back(t);
  }
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].clock, expected[i].clock) << i;
    ASSERT_EQ(found[i].address, expected[i].address) << i;
    ASSERT_EQ(found[i].data, expected[i].data) << i;
  }
}

TEST_F(CaptureTools, APartByTimeIsThatByTransactionsOfThen) {
  const auto all = test::read_all(session_);
  ConvertOptions part;
  part.range.from_seconds = 0.002;
  part.range.to_seconds = 0.003;
  convert_capture({session_}, {}, "record-csv", std::make_unique<FileSink>(path("part.csv")), part);
  const auto found = test::read_all(path("part.csv"));
  ASSERT_FALSE(found.empty());
  const auto first = std::find_if(all.begin(), all.end(), [&](const BusTransaction& t) {
    return static_cast<double>(t.clock) >= 0.002 * 9.52381e6;
  });
  EXPECT_EQ(found.front().address, first->address);
  EXPECT_EQ(found.front().clock, first->clock);
  EXPECT_LT(static_cast<double>(found.back().clock), 0.003 * 9.52381e6);
}

TEST_F(CaptureTools, APartBehindTheEndIsRefused) {
  ConvertOptions part;
  part.range.from = 10'000'000;
  for (const char* target : {"vcd", "native"}) {
    EXPECT_THROW(convert_capture({session_}, {}, target, std::make_unique<NullSink>(), part),
                 UsageError)
        << target;
  }
}

TEST_F(CaptureTools, TheShortNameOfRecordsAsCsvMeansThem) {
  convert("csv", "short.csv");
  convert("record-csv", "long.csv");
  EXPECT_EQ(load("short.csv"), load("long.csv"));
}

TEST_F(CaptureTools, RecordsAsCsvKeepEverything) {
  const auto expected = test::read_all(session_);
  const auto found = test::read_all(convert("record-csv", "records.csv"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].op, expected[i].op) << i;
    ASSERT_EQ(found[i].address, expected[i].address) << i;
    ASSERT_EQ(found[i].data, expected[i].data) << i;
    ASSERT_EQ(found[i].position, expected[i].position) << i;
  }
}

TEST_F(CaptureTools, NativeRecordsKeepEverything) {
  const auto expected = test::read_all(session_);
  const auto found = test::read_all(convert("native", "records.cap"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].op, expected[i].op) << i;
    ASSERT_EQ(found[i].flags, expected[i].flags) << i;
    ASSERT_EQ(found[i].address, expected[i].address) << i;
    ASSERT_EQ(found[i].data, expected[i].data) << i;
    ASSERT_EQ(found[i].position, expected[i].position) << i;
    ASSERT_EQ(found[i].clock, expected[i].clock) << i;
  }
  const auto original = open_capture({session_}, {}),
             copy = open_capture({path("records.cap")}, {});
  EXPECT_EQ(copy->info().format, "native");
  EXPECT_EQ(copy->info().cpu, original->info().cpu);
  EXPECT_EQ(copy->info().bus.bus_bytes, original->info().bus.bus_bytes);
  EXPECT_EQ(copy->info().address_mask, original->info().address_mask);
  EXPECT_GT(copy->info().clock_hz, 0);
  EXPECT_EQ(copy->info().clock_hz, original->info().clock_hz);
}

TEST_F(CaptureTools, ByuTraceKeepsAddressesKindsAndTimes) {
  auto expected = test::read_all(session_);
  std::erase_if(expected, [](const BusTransaction& t) { return t.op == BusOp::instruction_start; });
  CaptureOptions options;
  options.format = "byu";
  const auto found = test::read_all(convert("byu", "c.byu"), options);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].op, expected[i].op) << i;
    ASSERT_EQ(found[i].address, expected[i].address) << i;
    ASSERT_EQ(found[i].clock + expected[0].clock, expected[i].clock) << i;
  }
}

/// Records without a header, as a virtual monitor writes them: nothing declares bus and cache.
class HeaderlessRecords : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    std::ofstream out(path("bus.bin"), std::ios::binary);
    const auto put = [&](BusRecordType type, std::uint32_t address, std::uint8_t size,
                         std::uint8_t flags, std::uint8_t burst) {
      BusRecord r;
      r.instructions = r.clock = count_++;
      r.address = address;
      r.type = static_cast<std::uint8_t>(type);
      r.size = size;
      r.flags = flags;
      r.burst = burst;
      for (std::size_t i = 0; i < size; ++i) r.data[i] = static_cast<std::uint8_t>(i + 1);
      const auto bytes = std::bit_cast<std::array<char, kBusRecordBytes>>(r);
      out.write(bytes.data(), bytes.size());
    };
    for (std::uint32_t i = 0; i < 8; ++i) {
      put(BusRecordType::code_read, 0x1000 + 32 * i, 16, kLine, 0);
      put(BusRecordType::code_read, 0x1010 + 32 * i, 16, kLine, 1);
      put(BusRecordType::data_read, 0x8000 + 8 * i, 8, kUncacheable, 0);
    }
  }

  static std::string packed(const BusRecord& record) {
    const auto bytes = std::bit_cast<std::array<char, kBusRecordBytes>>(record);
    return {bytes.begin(), bytes.end()};
  }
  /// As earlier versions said that the page at `shown` stands for another one.
  static std::string stand_in(std::uint32_t shown, std::uint64_t page) {
    BusRecord record;
    record.instructions = kNoCount;
    record.address = shown;
    record.type = 15;
    record.size = 8;
    std::memcpy(record.data.data(), &page, sizeof page);
    return packed(record);
  }
  std::string bus_records() const {
    std::ostringstream bytes;
    bytes << std::ifstream(path("bus.bin"), std::ios::binary).rdbuf();
    return bytes.str();
  }

  std::uint32_t count_ = 0;
};

TEST_F(HeaderlessRecords, AsCsvShowTheSameMachine) {
  convert_capture({path("bus.bin")}, {}, "record-csv", std::make_unique<FileSink>(path("bus.csv")));
  const auto machine_of = [](const std::string& name) {
    const auto capture = open_capture({name}, {});
    BusTransaction t;
    while (capture->next(t)) {
    }
    return capture->info();
  };
  const CaptureInfo expected = machine_of(path("bus.bin")), found = machine_of(path("bus.csv"));
  EXPECT_EQ(expected.bus.bus_bytes, 8U);
  EXPECT_EQ(expected.bus.line_bytes, 32U);
  EXPECT_EQ(found.bus.bus_bytes, expected.bus.bus_bytes);
  EXPECT_EQ(found.bus.line_bytes, expected.bus.line_bytes);
  EXPECT_EQ(found.bus.form, expected.bus.form);
}

TEST_F(HeaderlessRecords, InTheNativeFormDeclareTheBusThatAllOfThemShow) {
  convert_capture({path("bus.bin")}, {}, "native", std::make_unique<FileSink>(path("bus.cap")));
  const auto capture = open_capture({path("bus.cap")}, {});
  EXPECT_FALSE(capture->info().width_inferred);
  EXPECT_EQ(capture->info().bus.bus_bytes, 8U);
  const auto expected = test::read_all(path("bus.bin")), found = test::read_all(path("bus.cap"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].address, expected[i].address);
    EXPECT_EQ(found[i].data, expected[i].data);
    EXPECT_EQ(found[i].flags, expected[i].flags);
    EXPECT_EQ(found[i].position, expected[i].position);
  }
}

TEST_F(HeaderlessRecords, KeepMemoryBeyond4GiBInEveryFormThatHasAPlaceForIt) {
  std::string records = bus_records();
  records.insert(6 * kBusRecordBytes, packed(high_record(0)));
  records.insert(3 * kBusRecordBytes, packed(high_record(0xfffff)));
  const auto low = test::read_all(path("bus.bin"));
  store("high.bin", records);
  convert_capture({path("high.bin")}, {}, "record-csv",
                  std::make_unique<FileSink>(path("high.csv")));
  convert_capture({path("high.csv")}, {}, "native", std::make_unique<FileSink>(path("high.cap")));
  for (const char* name : {"high.bin", "high.csv", "high.cap"}) {
    const auto found = test::read_all(path(name));
    ASSERT_EQ(found.size(), low.size()) << name;
    for (std::size_t i = 0; i < low.size(); ++i) {
      const std::uint64_t upper = i >= 3 && i < 6 ? 0xfffff00000000 : 0;
      EXPECT_EQ(found[i].address, PhysAddr{upper | low[i].address.value}) << name << ' ' << i;
      EXPECT_EQ(found[i].index, i);
      EXPECT_EQ(found[i].data, low[i].data);
    }
  }
  for (const char* target : {"byu", "vcd"}) {
    const ConvertResult result =
        convert_capture({path("high.bin")}, {}, target, std::make_unique<NullSink>());
    EXPECT_EQ(result.left_out, 3u) << target;
  }
}

TEST_F(HeaderlessRecords, OfEarlierVersionsMeanThePagesThatStandInsStandFor) {
  std::string records = bus_records();
  records.insert(6 * kBusRecordBytes, stand_in(0x8000, 0x7f000008000));
  records.insert(0, stand_in(0x1000, 0x100001000));
  store("old.bin", records);
  convert_capture({path("old.bin")}, {}, "native", std::make_unique<FileSink>(path("new.cap")));
  const auto low = test::read_all(path("bus.bin")), found = test::read_all(path("old.bin")),
             again = test::read_all(path("new.cap"));
  ASSERT_EQ(found.size(), low.size());
  ASSERT_EQ(again.size(), low.size());
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::uint64_t at = low[i].address.value;
    const std::uint64_t upper = at < 0x8000 ? 0x100000000 : i < 6 ? 0 : 0x7f000000000;
    EXPECT_EQ(found[i].address, PhysAddr{upper | at}) << i;
    EXPECT_EQ(again[i].address, PhysAddr{upper | at}) << i;
  }
}

TEST_F(HeaderlessRecords, ThatContradictThemselvesAboutAStandInAreRefused) {
  store("bad.bin", stand_in(0xc0001000, 0x100001000) + stand_in(0xc0001000, 0x200001000));
  CaptureOptions options;
  options.format = "machine";
  const auto capture = open_capture({path("bad.bin")}, options);
  BusTransaction t;
  try {
    (void)capture->next(t);
    FAIL() << "nothing was found wrong";
  } catch (const FormatError& e) {
    EXPECT_EQ(std::string(e.what()),
              path("bad.bin") +
                  ":40: bus record: address: c0001000 stands for 100001000 already, found it for "
                  "200001000");
  }
}

TEST_F(HeaderlessRecords, WithoutDataHaveNoNativeForm) {
  convert_capture({path("bus.bin")}, {}, "byu", std::make_unique<FileSink>(path("bus.byu")));
  EXPECT_THROW(convert_capture({path("bus.byu")}, {}, "native", std::make_unique<NullSink>()),
               UsageError);
}

TEST_F(HeaderlessRecords, ThatBecameAnAddressTraceHaveNoDataAsCsvEither) {
  convert_capture({path("bus.bin")}, {}, "byu", std::make_unique<FileSink>(path("bus.byu")));
  convert_capture({path("bus.byu")}, {}, "record-csv", std::make_unique<FileSink>(path("bus.csv")));
  const auto capture = open_capture({path("bus.csv")}, {});
  EXPECT_FALSE(capture->info().has_data);
  EXPECT_EQ(capture->info().warnings, std::vector<std::string>{std::string(kAddressesOnly)});
  const auto expected = test::read_all(path("bus.bin")), found = test::read_all(path("bus.csv"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].address, expected[i].address);
  ImportOptions options;
  options.initial_state = CpuState{};
  EXPECT_THROW(import_to_memory({path("bus.csv")}, options), FormatError);
}

TEST_F(HeaderlessRecords, AsSignalsAreRefusedAndTheReasonIsNamed) {
  convert_capture({path("bus.bin")}, {}, "vcd", std::make_unique<FileSink>(path("bus.vcd")));
  try {
    open_capture({path("bus.vcd")}, {});
    FAIL() << "was taken for a capture";
  } catch (const FormatError& e) {
    EXPECT_NE(std::string(e.what()).find("waveform viewers"), std::string::npos) << e.what();
  }
}

TEST(RecordCsv, HasTwoRowsForALineThatNoRecordHolds) {
  BusTransaction t;
  t.index = 7;
  t.op = BusOp::data_write;
  t.flags = kLine | kWriteBack;
  t.address = PhysAddr{0x1020};
  t.size = 32;
  for (std::size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(record_csv_lines(t, 32),
            "7,,,,MEM_WR,00001020,16,f,LW,0,000102030405060708090a0b0c0d0e0f\n"
            "7,,,,MEM_WR,00001030,16,f,LW,1,101112131415161718191a1b1c1d1e1f");
}

TEST_F(CaptureTools, SamplesCannotBeMadeFromRecords) {
  const std::string byu = convert("byu", "c.byu");
  EXPECT_THROW(convert_capture({byu}, {}, "ols", std::make_unique<NullSink>()), UsageError);
}

TEST_F(CaptureTools, ExplainNamesWhatIsMissing) {
  const auto lines = channel_lines(explain_channels({session_}, {}));
  const auto has = [&](const char* text) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(has("8088-max"));
  EXPECT_TRUE(has("A19 never rises"));
  EXPECT_TRUE(has("0007ffff"));
  EXPECT_TRUE(has("VS"));  // a channel nobody uses
}

bool has_finding(const LintReport& report, const char* check) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const LintFinding& finding) { return finding.check == check; });
}

TEST_F(CaptureTools, LintFindsNothingSureInASoundCapture) {
  const LintReport report = lint_capture({session_}, {});
  EXPECT_GT(report.transactions, 5000u);
  for (const LintFinding& finding : report.findings)
    EXPECT_EQ(finding.confidence, FindingConfidence::possible) << finding.text;
}

TEST_F(CaptureTools, LintFindsADataLineThatFlickers) {
  std::ostringstream rows;
  for (int i = 0; i < 400; ++i)
    rows << "MEM_RD," << std::hex << 0x1000 + i % 40 * 4 << ",1," << (i % 7 == 3 ? "08" : "00")
         << "\n";
  EXPECT_TRUE(has_finding(lint_capture({records(rows.str())}, {}), "data-line"));
}

TEST_F(CaptureTools, LintFindsAnAddressLineThatIsStuck) {
  std::ostringstream rows;
  for (unsigned i = 0; i < 4000; ++i)
    rows << "MEM_WR," << std::hex << ((i * 2654435761u >> 12) & 0xffbff) << ",1,55\n";
  const LintReport report = lint_capture({records(rows.str())}, {});
  ASSERT_TRUE(has_finding(report, "stuck-line"));
  EXPECT_NE(report.findings[0].text.find("A10 stays low"), std::string::npos);
}

TEST_F(CaptureTools, LintNamesWhereDecodingStops) {
  store("cut.byu", std::string(11, '\0') + "\x55" + std::string(36, '\x55'));
  CaptureOptions options;
  options.format = "byu";
  EXPECT_TRUE(has_finding(lint_capture({path("cut.byu")}, options), "not-decodable"));
}

}  // namespace
}  // namespace citcat
