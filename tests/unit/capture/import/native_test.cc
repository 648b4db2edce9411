#include "capture/import/native.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <iterator>
#include <random>
#include <utility>

#include "capture/import/record_csv.h"
#include "capture/writer/citcat_capture.h"
#include "formats/io/error.h"
#include "unit/capture/machine_data.h"
#include "unit/temporary_folder.h"

namespace citcat::test {
namespace {

int append(void* context, const std::uint8_t* bytes, std::size_t size) {
  static_cast<std::string*>(context)->append(reinterpret_cast<const char*>(bytes), size);
  return 0;
}

/// A program in C has the numbers of processors from its own header.
constexpr std::pair<citcat_cpu, CpuModel> kNumbered[] = {
    {CITCAT_CPU_UNKNOWN, CpuModel::unknown}, {CITCAT_CPU_8088, CpuModel::i8088},
    {CITCAT_CPU_286, CpuModel::i286},        {CITCAT_CPU_386, CpuModel::i386},
    {CITCAT_CPU_486, CpuModel::i486},        {CITCAT_CPU_PENTIUM, CpuModel::pentium},
    {CITCAT_CPU_P6, CpuModel::p6},           {CITCAT_CPU_X86_64, CpuModel::x86_64},
    {CITCAT_CPU_8086, CpuModel::i8086},      {CITCAT_CPU_80186, CpuModel::i80186},
    {CITCAT_CPU_80188, CpuModel::i80188},    {CITCAT_CPU_V20, CpuModel::v20},
    {CITCAT_CPU_V30, CpuModel::v30}};

TEST(NativeWriter, NumbersProcessorsAsTheReaderDoes) {
  for (const auto& [written, read] : kNumbered) {
    EXPECT_EQ(static_cast<int>(written), static_cast<int>(read)) << cpu_model_name(read);
  }
  EXPECT_EQ(std::size(kNumbered), static_cast<std::size_t>(kLastCpuModel) + 1) << "unknown too";
}

/// A capture as the C library writes it.
std::string native_capture(const citcat_capture_info& info,
                           const std::vector<citcat_capture_record>& records) {
  std::string file;
  citcat_capture capture;
  EXPECT_EQ(citcat_capture_begin(&capture, &info, append, &file), 0);
  for (const auto& record : records) EXPECT_EQ(citcat_capture_put(&capture, &record), 0);
  EXPECT_EQ(citcat_capture_end(&capture), 0);
  return file;
}

citcat_capture_info full_info() {
  citcat_capture_info info{};
  info.cpu = CITCAT_CPU_486;
  info.cache = CITCAT_CACHE_WRITE_THROUGH;
  info.line_bytes = 16;
  info.counts_instructions = 1;
  info.counts_clocks = 1;
  info.address_mask = 0x3ffffff;
  info.monitor = "a monitor with a name that is much too long";
  return info;
}

std::vector<citcat_capture_record> sample_records() {
  return {
      {0, 10, 0xffff0, 0, CITCAT_CODE_READ, 16, CITCAT_LINE, 0, {1, 2, 3}},
      {0, 12, 0x1003, 0, CITCAT_DATA_READ, 1, CITCAT_UNCACHEABLE, 0, {9}},
      {1, 0xfffffff0, 0x1000, 5, CITCAT_DATA_WRITE, 4, 0, 0, {4, 3, 2, 1}},
      {2, 3, 0x60, 0, CITCAT_IO_READ, 1, 0, 0, {0x1c}},
      {CITCAT_NOT_COUNTED, 4, 0, 0, CITCAT_INTERRUPT_ACKNOWLEDGE, 1, 0, 0, {0x30}},
      {3, 5, 0x400, 0, CITCAT_INSTRUCTION, 2, CITCAT_INSTRUCTION_FLUSHED, 0, {0xcd, 0x21}},
      {4, 6, 0, 0, CITCAT_FLUSH, 1, 0, 0, {2}},
      {5, 7, 0, 0, CITCAT_HALT, 0, 0, 0, {}},
  };
}

citcat_capture_record cut(int reason) {
  return {CITCAT_NOT_COUNTED, 0, 0, 0, CITCAT_CUT, 1, 0, 0, {static_cast<std::uint8_t>(reason)}};
}

class Native : public TemporaryFolder {
 protected:
  std::vector<BusTransaction> read(const std::string& bytes, CaptureInfo* info = nullptr) {
    store("x.cap", bytes);
    const auto reader = open_capture({path("x.cap")}, {});
    return read_all(*reader, info);
  }
  static std::vector<BusTransaction> read_all(CaptureReader& reader, CaptureInfo* info = nullptr) {
    std::vector<BusTransaction> all;
    BusTransaction t;
    while (reader.next(t)) all.push_back(t);
    if (info != nullptr) *info = reader.info();
    return all;
  }
};

TEST_F(Native, GivesBackWhatTheWriterWasGiven) {
  CaptureInfo info;
  const auto all = read(native_capture(full_info(), sample_records()), &info);
  EXPECT_EQ(info.format, "native");
  EXPECT_EQ(info.cpu, CpuModel::i486);
  EXPECT_EQ(info.bus.form, CacheForm::write_through);
  EXPECT_EQ(info.bus.line_bytes, 16u);
  EXPECT_EQ(info.bus.bus_bytes, 4u);
  EXPECT_EQ(info.address_mask, 0x3ffffffu);
  EXPECT_TRUE(info.has_positions);
  ASSERT_EQ(all.size(), 8u);
  EXPECT_EQ(all[0].flags, kLine | kPositionKnown | kClockKnown);
  EXPECT_EQ(all[2].position, (Position{1, 5}));
  EXPECT_EQ(all[2].value(), 0x01020304u);
  EXPECT_EQ(all[3].clock, 0x100000003u) << "the clock wrapped";
  EXPECT_FALSE(all[4].has(kPositionKnown));
  EXPECT_EQ(all[5].op, BusOp::instruction_start);
  EXPECT_TRUE(all[5].has(kFlushed));
  EXPECT_EQ(all[7].op, BusOp::halt);
  EXPECT_EQ(all[7].index, 7u);
}

TEST_F(Native, HasMemoryBeyond4GiB) {
  std::string file;
  citcat_capture capture;
  const citcat_capture_info info = full_info();
  ASSERT_EQ(citcat_capture_begin(&capture, &info, append, &file), 0);
  ASSERT_EQ(citcat_capture_high(&capture, 0x12345), 0);
  const citcat_capture_record record = {0, 0, 0x40023010, 0,           CITCAT_DATA_READ,
                                        4, 0, 0,          {1, 2, 3, 4}};
  ASSERT_EQ(citcat_capture_put(&capture, &record), 0);
  ASSERT_EQ(citcat_capture_end(&capture), 0);
  CaptureInfo found;
  const auto all = read(file, &found);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].index, 0u);
  EXPECT_EQ(all[0].address, PhysAddr{0x1234540023010});
}

TEST_F(Native, DeclaresNothingWithAnEmptyHeader) {
  CaptureInfo info;
  const auto all = read(native_capture({}, sample_records()), &info);
  EXPECT_EQ(info.cpu, CpuModel::unknown);
  EXPECT_FALSE(info.has_positions);
  EXPECT_EQ(info.bus.form, CacheForm::write_through) << "a line burst was seen";
  for (const BusTransaction& t : all) EXPECT_EQ(t.flags & (kPositionKnown | kClockKnown), 0);
}

TEST_F(Native, CutAtAnyLengthIsRefused) {
  const std::string whole = native_capture(full_info(), sample_records());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    store("cut.cap", whole.substr(0, length));
    EXPECT_THROW(
        {
          const auto reader = open_native_capture({path("cut.cap")}, {});
          read_all(*reader);
        },
        FormatError)
        << length;
  }
}

TEST_F(Native, ABitChangedAnywhereIsNoticed) {
  const std::string whole = native_capture(full_info(), sample_records());
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    store("flipped.cap", damaged);
    EXPECT_THROW(
        {
          const auto reader = open_native_capture({path("flipped.cap")}, {});
          read_all(*reader);
        },
        FormatError)
        << "bit " << bit;
  }
}

TEST_F(Native, TheFirstVersionIsReadAsBefore) {
  const std::string now = native_capture(full_info(), sample_records());
  std::string before = now.substr(0, 64) + now.substr(CITCAT_CAPTURE_HEADER_BYTES);
  before[8] = 1;
  before[10] = 64;
  CaptureInfo info, info_now;
  const auto all = read(before, &info);
  EXPECT_EQ(all.size(), read(now, &info_now).size());
  EXPECT_EQ(info.cpu, info_now.cpu);
}

TEST_F(Native, TransfersThatTheBusCannotMakeAreRefused) {
  const std::vector<citcat_capture_record> wrong = {
      {0, 0, 0x1003, 0, CITCAT_DATA_READ, 2, 0, 0, {}},
      {0, 0, 0x1000, 0, CITCAT_DATA_READ, 8, 0, 0, {}},
      {0, 0, 0x1008, 0, CITCAT_DATA_READ, 16, CITCAT_LINE, 0, {}},
      {0, 0, 0x1000, 0, CITCAT_DATA_READ, 16, CITCAT_LINE, 2, {}},
      {0, 0, 0x10003, 0, CITCAT_IO_READ, 1, 0, 0, {}},
      {0, 0, 0x10002, 0, CITCAT_IO_READ, 2, 0, 0, {}},
      {0, 0, 0xffffffff, 0, CITCAT_IO_READ, 2, 0, 0, {}},
      {0, 0, 0x80, 0, CITCAT_IO_WRITE, 5, 0, 0, {}},
      {0, 0, 0x80, 0, CITCAT_IO_WRITE, 0, 0, 0, {}},
      {0, 0, 0x82, 0, CITCAT_IO_WRITE, 3, 0, 0, {}},
      {0, 0, 0, 0, CITCAT_FLUSH, 1, 0, 0, {3}},
      {0, 0, 0x1000, 0, CITCAT_DATA_READ, 1, 64, 0, {}},
      {0, 0, 0x1000, 0, CITCAT_DATA_READ, 1, 0, 0, {1, 1}},
      {0, 0, 0x1000, 0, 14, 1, 0, 0, {}},
      {0, 0, 0x1000, 0, CITCAT_DATA_READ, 17, 0, 0, {}},
  };
  for (const auto& record : wrong) {
    EXPECT_THROW(read(native_capture(full_info(), {record})), FormatError);
  }
}

/// As a bus makes them of dwords, and whole, where a monitor sees accesses.
TEST_F(Native, PartsOfPortAccessesAndWholeOnesAreAccepted) {
  const std::vector<citcat_capture_record> right = {
      {0, 0, 0x81, 0, CITCAT_IO_WRITE, 3, 0, 0, {}},
      {0, 0, 0x80, 0, CITCAT_IO_READ, 3, 0, 0, {}},
      {0, 0, 0x83, 0, CITCAT_IO_READ, 4, 0, 0, {}},
      {0, 0, 0xffff, 0, CITCAT_IO_WRITE, 4, 0, 0, {}},
      {0, 0, 0x10000, 0, CITCAT_IO_WRITE, 3, 0, 0, {}},
  };
  for (const auto& record : right) {
    EXPECT_NO_THROW(read(native_capture(full_info(), {record}))) << record.address;
  }
}

TEST_F(Native, TheCsvTwinIsTheSameCapture) {
  CaptureInfo info;
  const auto all = read(native_capture(full_info(), sample_records()), &info);
  std::string text = "#citcat-capture 1 cpu=486 cache=write-through line=16 bus=4 mask=3ffffff\n";
  text += std::string(record_csv_header()) + "\n";
  for (const BusTransaction& t : all) text += record_csv_lines(t, info.bus.line_bytes) + "\n";
  store("twin.csv", text);
  const auto reader = open_capture({path("twin.csv")}, {});
  CaptureInfo twin;
  const auto again = read_all(*reader, &twin);
  ASSERT_EQ(again.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(again[i].op, all[i].op);
    EXPECT_EQ(again[i].address, all[i].address);
    EXPECT_EQ(again[i].flags, all[i].flags) << i;
    EXPECT_EQ(again[i].position, all[i].position);
    EXPECT_EQ(again[i].data, all[i].data);
    EXPECT_EQ(again[i].clock, all[i].clock);
  }
  EXPECT_EQ(twin.cpu, info.cpu);
  EXPECT_EQ(twin.address_mask, info.address_mask);
  EXPECT_EQ(twin.bus.form, info.bus.form);
}

TEST_F(Native, EveryFormSaysThatItWasInterruptedAndWhy) {
  constexpr std::array kReasons{std::pair{CITCAT_CUT_SOURCE_GONE, Ending::source_gone},
                                std::pair{CITCAT_CUT_STORAGE_FULL, Ending::storage_full},
                                std::pair{CITCAT_CUT_BY_HAND, Ending::by_hand},
                                std::pair{CITCAT_CUT_MONITOR, Ending::monitor_failed}};
  for (const auto& [code, ending] : kReasons) {
    SCOPED_TRACE(ending_name(ending));
    auto records = sample_records();
    records.push_back(cut(code));
    const std::string native = native_capture(full_info(), records);
    const std::string headerless =
        native.substr(CITCAT_CAPTURE_HEADER_BYTES, records.size() * kBusRecordBytes);
    std::vector<BusTransaction> all;
    for (const std::string& capture : {native, headerless}) {
      CaptureInfo info;
      all = read(capture, &info);
      EXPECT_EQ(all.size(), sample_records().size()) << "the mark is no transaction";
      EXPECT_EQ(info.ending, ending);
      EXPECT_TRUE(is_interrupted(info.ending));
      ASSERT_EQ(info.warnings.size(), 1u);
      EXPECT_NE(info.warnings[0].find(ending_name(ending)), std::string::npos);
    }
    std::string csv = std::string(record_csv_header()) + "\n";
    for (const BusTransaction& t : all) csv += record_csv_lines(t, 16) + "\n";
    CaptureInfo info;
    read(csv + record_csv_cut_line(all.size(), ending) + "\n", &info);
    EXPECT_EQ(info.ending, ending);
  }
}

TEST_F(Native, ACaptureThatWasNotInterruptedSaysSo) {
  CaptureInfo info;
  read(native_capture(full_info(), sample_records()), &info);
  EXPECT_EQ(info.ending, Ending::capture_end);
  EXPECT_TRUE(info.warnings.empty());
}

TEST_F(Native, NothingFollowsTheMarkOfAnInterruption) {
  for (const std::size_t behind : {0u, 3u, 7u}) {
    auto records = sample_records();
    records.insert(records.begin() + static_cast<std::ptrdiff_t>(behind),
                   cut(CITCAT_CUT_STORAGE_FULL));
    EXPECT_THROW(read(native_capture(full_info(), records)), FormatError) << behind;
  }
  for (const int code : {0, 5, 255})
    EXPECT_THROW(read(native_capture(full_info(), {cut(code)})), FormatError) << code;
}

TEST_F(Native, CsvNeedsOnlyWhatABusShows) {
  store("small.csv", "type,addr,size,data\r\nMEM_WR,1000,2,abcd\r\n\r\nHALT,0,0,\r\n");
  const auto reader = open_capture({path("small.csv")}, {});
  const auto all = read_all(*reader);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].value(), 0xcdabu);
  EXPECT_EQ(all[0].flags, 0);
  EXPECT_FALSE(reader->info().has_positions);
}

TEST_F(Native, CsvErrorsNameLineAndColumn) {
  const struct {
    const char* line;
    const char* message;
  } cases[] = {
      {"MEM_XX,1000,1,00", "small.csv:2: type:"},
      {"MEM_RD,10 00,1,00", "small.csv:2: addr:"},
      {"MEM_RD,1000,17,00", "small.csv:2: size:"},
      {"MEM_RD,1000,2,00", "small.csv:2: data:"},
      {"MEM_RD,1000,1,0g", "small.csv:2: data:"},
      {"MEM_RD,1000,1", "small.csv:2: expected 4 fields, found 3"},
      {"MEM_RD,1007,2,0000", "small.csv:2: bus record: size"},
  };
  for (const auto& c : cases) {
    store("small.csv", std::string("type,addr,size,data\n") + c.line + "\n");
    try {
      const auto reader = open_record_csv({path("small.csv")}, {});
      read_all(*reader);
      ADD_FAILURE() << c.line << " was accepted";
    } catch (const FormatError& error) {
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
    }
  }
}

TEST_F(Native, HoldsARealCaptureUnchanged) {
  if (machine_folder().empty()) GTEST_SKIP() << "shared/data/machine is not there";
  const MachineData data(machine_folder() + "/lin_user_tiny");
  std::vector<citcat_capture_record> records;
  for (const MonitorRecord& r : data.records('C')) {
    citcat_capture_record record{r.icount, r.clk,   r.addr,  r.rep, r.type,
                                 r.size,   r.flags, r.burst, {}};
    std::memcpy(record.data, r.data, sizeof(record.data));
    records.push_back(record);
  }
  citcat_capture_info info{};
  info.counts_instructions = 1;
  info.counts_clocks = 1;
  const auto native = read(native_capture(info, records));
  const auto foreign = open_capture({data.path("busC.bin.zst")}, {});
  const auto truth = read_all(*foreign);
  ASSERT_EQ(native.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ASSERT_EQ(native[i].data, truth[i].data);
    ASSERT_EQ(native[i].flags, truth[i].flags);
    ASSERT_EQ(native[i].address, truth[i].address);
    ASSERT_EQ(native[i].position, truth[i].position);
    ASSERT_EQ(native[i].clock, truth[i].clock);
  }
}

}  // namespace
}  // namespace citcat::test
