#include "capture/import/record_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "capture/bus/cache_form.h"
#include "capture/bus/text_fields.h"
#include "capture/import/record_capture.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

constexpr std::string_view kRecordHeader = "seq,icount,rep,clk,type,addr,size,be,flags,burst,data";

enum Column { kSeq, kIcount, kRep, kClk, kType, kAddr, kSize, kBe, kFlags, kBurst, kData };
constexpr std::size_t kColumns = kData + 1;
constexpr std::array<std::string_view, kColumns> kColumnNames{
    "seq", "icount", "rep", "clk", "type", "addr", "size", "be", "flags", "burst", "data"};
constexpr std::array kRequired{kType, kAddr, kSize, kData};

struct FlagLetter {
  char letter;
  std::uint8_t bit;
};
constexpr std::array<FlagLetter, 7> kFlagLetters{{{'L', kLine},
                                                  {'W', kWriteBack},
                                                  {'U', kUncacheable},
                                                  {'S', kSnoop},
                                                  {'D', kStateWindow},
                                                  {'R', kStoreFill},
                                                  {'P', 128}}};
constexpr std::array<FlagLetter, 3> kStartLetters{{{'P', 1}, {'F', 2}, {'B', 4}}};

bool is_start(std::uint8_t type) {
  return type == static_cast<std::uint8_t>(BusRecordType::instruction_start);
}

class CsvRecordFile final : public RecordFile {
 public:
  explicit CsvRecordFile(std::unique_ptr<InputStream> input)
      : RecordFile(std::move(input)), lines_(*input_) {
    std::string_view line;
    if (!lines_.next(line))
      throw FormatError(lines_.name(), 1, "expected a header line, found nothing");
    if (line.starts_with(kRecordCsvDeclaration)) {
      parse_declaration(line.substr(kRecordCsvDeclaration.size()));
      if (!lines_.next(line)) lines_.fail("expected a header line, found nothing");
    }
    parse_header(line);
  }

  std::span<const std::uint8_t> next() override {
    std::string_view line;
    do {
      if (!lines_.next(line)) return {};
    } while (line.empty());
    split_fields(line, fields_);
    if (fields_.size() != columns_) {
      lines_.fail("expected " + std::to_string(columns_) + " fields, found " +
                  std::to_string(fields_.size()));
    }
    std::array<BusRecord, 2> records;
    parse_record(records[1]);
    if (upper_ != told_upper_) records[0] = high_record(told_upper_ = upper_);
    packed_ = std::bit_cast<std::array<std::uint8_t, 2 * kBusRecordBytes>>(records);
    return std::span(packed_).subspan(records[0].type != 0 ? 0 : kBusRecordBytes);
  }
  bool is_stored_so() const override { return false; }
  std::uint64_t where(std::size_t) const override { return lines_.number(); }

 private:
  void parse_declaration(std::string_view words);
  void declare(std::string_view key, std::string_view value);
  void parse_header(std::string_view line);
  void parse_record(BusRecord& out);
  void parse_flags(BusRecord& out);
  void parse_data(BusRecord& out);

  /// The field of a column, "" when the file does not have it.
  std::string_view field(Column column) const {
    return place_[column] < 0 ? std::string_view{}
                              : fields_[static_cast<std::size_t>(place_[column])];
  }
  std::uint64_t number(Column column, int base, std::uint64_t max) const {
    const auto value = parse_number(field(column), base, max);
    if (!value) bad(column, base == 10 ? "a decimal number" : "a hexadecimal number");
    return *value;
  }
  [[noreturn]] void bad(Column column, const std::string& expected) const {
    lines_.fail(std::string(kColumnNames[column]) + ": expected " + expected + ", found \"" +
                std::string(field(column)) + "\"");
  }

  LineReader lines_;
  std::array<int, kColumns> place_{};  ///< index of each column among the fields, -1 for none
  std::size_t columns_ = 0;
  std::vector<std::string_view> fields_;
  std::uint32_t upper_ = 0;       ///< half of the address of the last access to memory
  std::uint32_t told_upper_ = 0;  ///< the same, that records say
  std::array<std::uint8_t, 2 * kBusRecordBytes> packed_{};
};

void CsvRecordFile::parse_declaration(std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      lines_.fail("expected key=value, found " + std::string(word));
    declare(word.substr(0, equals), word.substr(equals + 1));
  }
}

void CsvRecordFile::declare(std::string_view key, std::string_view value) {
  const auto refuse = [&](const char* expected) {
    lines_.fail(std::string(key) + ": expected " + expected + ", found \"" + std::string(value) +
                "\"");
  };
  if (key == "cpu") {
    const auto model = parse_cpu_model(value);
    if (!model) refuse("a processor");
    declaration_.cpu = *model;
  } else if (key == "cache") {
    const auto form = parse_cache_form(value);
    if (!form) refuse("none, write-through or write-back");
    declaration_.cache_declared = true;
    declaration_.bus.form = *form;
  } else if (key == "data") {
    if (value != "none") refuse("none");
    declaration_.has_data = false;
  } else if (key == "bus" || key == "line") {
    const auto bytes = parse_number(value, 10, 32);
    if (!bytes) refuse("a number of bytes");
    if (key == "line") {
      declaration_.bus.line_bytes = static_cast<std::uint32_t>(*bytes);
    } else {
      if (*bytes != 1 && *bytes != 2 && *bytes != 4 && *bytes != 8) refuse("1, 2, 4 or 8");
      declaration_.bus.bus_bytes = static_cast<std::uint32_t>(*bytes);
      declaration_.width_declared = true;
    }
  } else if (key == "mask") {
    const auto mask = parse_number(value, 16, 0xffffffff);
    if (!mask) refuse("a hexadecimal number");
    declaration_.bus.address_mask = static_cast<std::uint32_t>(*mask);
  } else {
    lines_.fail("expected cpu, cache, bus, line, mask or data, found \"" + std::string(key) + "\"");
  }
}

void CsvRecordFile::parse_header(std::string_view line) {
  split_fields(line, fields_);
  columns_ = fields_.size();
  place_.fill(-1);
  for (std::size_t i = 0; i < columns_; ++i) {
    const auto* const name = std::find(kColumnNames.begin(), kColumnNames.end(), fields_[i]);
    if (name == kColumnNames.end()) {
      lines_.fail("unknown column \"" + std::string(fields_[i]) + "\"; known are " +
                  std::string(kRecordHeader));
    }
    place_[static_cast<std::size_t>(name - kColumnNames.begin())] = static_cast<int>(i);
  }
  for (const Column column : kRequired) {
    if (place_[column] < 0) lines_.fail("no column " + std::string(kColumnNames[column]));
  }
  declaration_.has_positions = place_[kIcount] >= 0;
  declaration_.has_clock = place_[kClk] >= 0;
}

void CsvRecordFile::parse_record(BusRecord& out) {
  out.type = bus_record_type_of(field(kType));
  if (out.type == 0) bad(kType, "a type such as CODE_RD");
  out.instructions = field(kIcount).empty() ? kNoCount : number(kIcount, 10, kNoCount - 1);
  if (!field(kRep).empty())
    out.iterations = static_cast<std::uint32_t>(number(kRep, 10, 0xffffffff));
  if (!field(kClk).empty()) out.clock = static_cast<std::uint32_t>(number(kClk, 10, kNoCount));
  const bool is_access = out.type <= static_cast<std::uint8_t>(BusRecordType::data_write);
  const std::uint64_t address =
      number(kAddr, 16, (std::uint64_t{1} << (is_access ? kAddressBits : 32)) - 1);
  out.address = static_cast<std::uint32_t>(address);
  if (is_access) upper_ = static_cast<std::uint32_t>(address >> 32);
  out.size = static_cast<std::uint8_t>(number(kSize, 10, kBusRecordData));
  if (!field(kBurst).empty()) out.burst = static_cast<std::uint8_t>(number(kBurst, 10, 255));
  parse_flags(out);
  parse_data(out);
}

void CsvRecordFile::parse_flags(BusRecord& out) {
  const auto add = [&](const auto& letters, char letter) {
    const auto* const row = std::find_if(letters.begin(), letters.end(),
                                         [&](const FlagLetter& f) { return f.letter == letter; });
    if (row == letters.end()) bad(kFlags, "letters of LWUSDRP, or -");
    out.flags |= row->bit;
  };
  if (field(kFlags) == "-") return;
  for (const char letter : field(kFlags)) {
    if (is_start(out.type)) {
      add(kStartLetters, letter);
    } else {
      add(kFlagLetters, letter);
    }
  }
}

void CsvRecordFile::parse_data(BusRecord& out) {
  const std::string_view digits = field(kData);
  if (digits.empty() && !declaration_.has_data) return;
  if (digits.size() != std::size_t{out.size} * 2) {
    bad(kData, "the " + std::to_string(out.size * 2) + " digits of " + std::to_string(out.size) +
                   " bytes");
  }
  for (std::size_t i = 0; i < out.size; ++i) {
    const auto byte = parse_number(digits.substr(2 * i, 2), 16, 255);
    if (!byte) bad(kData, "hexadecimal digits");
    out.data[i] = static_cast<std::uint8_t>(*byte);
  }
}

/// Byte enables of a single transfer: bit i for byte lane i of a dword.
unsigned byte_enables(const BusTransaction& t) {
  if (t.op > BusOp::io_write) return 0;
  if (t.size > 4) return 15;
  return ((1u << t.size) - 1) << t.address.offset_in(4) & 15;
}

}  // namespace

std::string_view record_csv_header() { return kRecordHeader; }

std::string record_csv_lines(const BusTransaction& t, std::uint32_t line_bytes, bool has_data) {
  if (t.size > kBusRecordData) {
    BusTransaction low = t, high = t;
    low.size = kBusRecordData;
    high.address = t.address.plus32(kBusRecordData);
    high.size = static_cast<std::uint8_t>(t.size - kBusRecordData);
    std::copy_n(t.data.begin() + kBusRecordData, high.size, high.data.begin());
    return record_csv_lines(low, kMaxTransactionBytes, has_data) + "\n" +
           record_csv_lines(high, kMaxTransactionBytes, has_data);
  }
  const std::uint8_t type = bus_record_type_of(t.op);
  std::string flags;
  if (t.op == BusOp::instruction_start) {
    if (t.has(kPrefix)) flags += 'P';
    if (t.has(kFlushed)) flags += 'F';
    if (t.has(kBranchTarget)) flags += 'B';
  } else {
    for (const FlagLetter& f : kFlagLetters) {
      if (f.letter != 'P' && (t.flags & f.bit) != 0) flags += f.letter;
    }
  }
  if (flags.empty()) flags = "-";
  const bool counted = t.has(kPositionKnown);
  std::string line = fmt::format(
      "{},{},{},{},{},{:08x},{},{:x},{},{},", t.index,
      counted ? std::to_string(t.position.instruction) : "",
      counted ? std::to_string(t.position.iteration) : "",
      t.has(kClockKnown) ? std::to_string(t.clock) : "", bus_record_type_name(type),
      t.address.value, t.size, byte_enables(t), flags,
      t.has(kLine) && line_bytes > kBusRecordData ? t.address.low32() / kBusRecordData % 2 : 0);
  // Which kind of flush it was is no data.
  if (!has_data && t.op != BusOp::flush) return line;
  for (const std::uint8_t byte : t.bytes()) line += fmt::format("{:02x}", byte);
  return line;
}

std::string record_csv_cut_line(std::uint64_t index, Ending ending) {
  return fmt::format("{},,,,{},00000000,1,0,-,0,{:02x}", index,
                     bus_record_type_name(static_cast<std::uint8_t>(BusRecordType::cut)),
                     cut_code(ending));
}

std::string record_csv_reached_line(std::uint64_t index, const Position& position) {
  return fmt::format("{},{},{},,{},00000000,0,0,-,0,", index, position.instruction,
                     position.iteration,
                     bus_record_type_name(static_cast<std::uint8_t>(BusRecordType::reached)));
}

int detect_record_csv(const CaptureProbe& probe) {
  const std::string_view text(reinterpret_cast<const char*>(probe.prefix.data()),
                              probe.prefix.size());
  if (text.starts_with(kRecordCsvDeclaration)) return 100;
  const std::string_view header = text.substr(0, text.find_first_of("\r\n"));
  const auto has = [&](std::string_view name) { return header.find(name) != header.npos; };
  return has("type,addr,size") && has("data") ? 90 : 0;
}

std::unique_ptr<RecordFile> make_csv_record_file(std::unique_ptr<InputStream> input) {
  return std::make_unique<CsvRecordFile>(std::move(input));
}

std::unique_ptr<CaptureReader> open_record_csv(const std::vector<std::string>& paths,
                                               const CaptureOptions& options) {
  return open_record_capture("record-csv", paths, options, make_csv_record_file);
}

}  // namespace citcat
