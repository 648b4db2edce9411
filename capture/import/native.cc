#include "capture/import/native.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "capture/import/processor_capture.h"
#include "capture/import/record_capture.h"
#include "capture/import/simd_records.h"
#include "formats/io/byte_reader.h"
#include "formats/io/error.h"
#include "formats/io/simd_vectors.h"

namespace citcat {
namespace {

template <typename T, std::size_t N>
T pick(const std::array<T, N>& values, std::uint8_t code, ByteReader& in, const char* field) {
  if (code >= N) {
    in.fail(std::string(field) + ": expected at most " + std::to_string(N - 1) + ", found " +
            std::to_string(code));
  }
  return values[code];
}

/// Returns the version.
std::uint16_t parse_version(ByteReader& in) {
  in.skip(kNativeMagic.size(), "magic");
  const std::uint16_t version = in.u16("version");
  if (version < 1 || version > kNativeProcessorsVersion) {
    in.fail_at(8, "native capture: expected version 1 to 3, found " + std::to_string(version));
  }
  const std::uint16_t bytes = version == 1 ? kNativeFieldBytes : kNativeHeaderBytes;
  if (in.u16("header size") != bytes || in.u16("record size") != kBusRecordBytes) {
    in.fail_at(10, "native capture: expected a header of " + std::to_string(bytes) +
                       " bytes and records of 40");
  }
  return version;
}

RecordDeclaration parse_fields(ByteReader& in, std::uint16_t version) {
  RecordDeclaration declared;
  const std::uint16_t flags = in.u16("flags");
  const unsigned sharing = version == kNativeProcessorsVersion ? unsigned{kNativeSharing} : 0U;
  if ((flags & ~(kNativePositions | kNativeClock | sharing)) != 0) {
    in.fail_at(14, "flags: unknown bits in " + std::to_string(flags));
  }
  constexpr unsigned kNeeded = kNativePositions | kNativeClock;
  if (version == kNativeProcessorsVersion && (flags & kNeeded) != kNeeded) {
    in.fail_at(14,
               "flags: expected counts (1) and clocks (2), which put several processors into "
               "one order, found " +
                   std::to_string(flags));
  }
  declared.has_positions = (flags & kNativePositions) != 0;
  declared.has_clock = (flags & kNativeClock) != 0;
  declared.shows_sharing = (flags & kNativeSharing) != 0;
  const std::uint8_t cpu = in.u8("cpu");
  if (cpu > static_cast<std::uint8_t>(kLastCpuModel)) {
    in.fail("cpu: expected a code below " +
            std::to_string(static_cast<unsigned>(kLastCpuModel) + 1) + ", found " +
            std::to_string(cpu));
  }
  declared.cpu = static_cast<CpuModel>(cpu);
  constexpr std::array kForms{CacheForm::none, CacheForm::none, CacheForm::write_through,
                              CacheForm::write_back};
  const std::uint8_t cache = in.u8("cache");
  declared.width_declared = true;
  declared.cache_declared = cache != 0;
  declared.bus.form = pick(kForms, cache, in, "cache");
  declared.bus.bus_bytes = in.u8("bus width");
  if (declared.bus.bus_bytes != 1 && declared.bus.bus_bytes != 2 && declared.bus.bus_bytes != 4 &&
      declared.bus.bus_bytes != 8) {
    in.fail("bus width: expected 1, 2, 4 or 8, found " + std::to_string(declared.bus.bus_bytes));
  }
  declared.bus.line_bytes = in.u8("line size");
  if (declared.bus.line_bytes != 0 && declared.bus.line_bytes != 16 &&
      declared.bus.line_bytes != 32) {
    in.fail("line size: expected 0, 16 or 32, found " + std::to_string(declared.bus.line_bytes));
  }
  declared.bus.address_mask = in.u32("address mask");
  declared.clock_hz = static_cast<double>(in.u64("clocks a second"));
  return declared;
}

constexpr std::size_t kTypeAt = offsetof(BusRecord, type);
constexpr auto kEndType = static_cast<std::uint8_t>(BusRecordType::end);

class NativeRecordFile final : public RecordFile {
 public:
  explicit NativeRecordFile(std::unique_ptr<InputStream> input)
      : RecordFile(std::move(input)), source_(*input_) {
    std::array<std::uint8_t, kNativeFieldBytes> header{};
    input_->read_exact(header, "header of a native capture");
    if (!std::equal(kNativeMagic.begin(), kNativeMagic.end(), header.begin())) {
      throw FormatError(input_->name(), 0,
                        "expected the magic number of a native capture, found another");
    }
    ByteReader in(header, input_->name());
    const std::uint16_t version = parse_version(in);
    if (version != 1) check_header(header);
    declaration_ = parse_fields(in, version);
  }

  std::span<const std::uint8_t> next() override {
    const auto block = source_.next();
    if (block.empty()) {
      throw FormatError(
          input_->name(), input_->offset(),
          "the capture ends without an end record, after " + std::to_string(records_) + " records");
    }
    const std::size_t count = block.size() / kBusRecordBytes;
    const std::size_t records = add_to_sums(block);
    records_ += records;
    if (records == count) return block;
    source_.put_back(count - records);
    if (records == 0) check_end();
    return block.first(records * kBusRecordBytes);
  }
  std::uint64_t where(std::size_t index) const override {
    return source_.offset() + index * kBusRecordBytes;
  }

 private:
  void check_header(std::span<const std::uint8_t, kNativeFieldBytes> fields) {
    std::array<std::uint8_t, kNativeHeaderBytes - kNativeFieldBytes> stored{};
    input_->read_exact(stored, "sum of a native capture's header");
    if (ByteReader(stored, input_->name()).u64("sum") == native_header_sum(fields)) return;
    throw FormatError(input_->name(), kNativeFieldBytes,
                      "the sum over the header differs, the capture is damaged");
  }

  /// Returns how many records are before the end record.
  std::size_t add_to_sums(std::span<const std::uint8_t> block) {
    const std::size_t wide =
        has_simd_vectors() ? SimdRecords::add_rows(block, kEndType, column_, behind_) : 0;
    rows_ += wide / SimdRecords::kRowRecords;
    block = block.subspan(wide * kBusRecordBytes);
    if (block.empty()) return wide;
    if (rows_ != 0)
      add_columns(std::exchange(rows_, 0), std::exchange(column_, {}), std::exchange(behind_, {}));
    return wide + add_rest(block);
  }

  std::size_t add_rest(std::span<const std::uint8_t> block) {
    std::size_t records = 0;
    while (records < block.size() / kBusRecordBytes &&
           block[records * kBusRecordBytes + kTypeAt] != kEndType)
      ++records;
    const std::size_t in_pairs = records / 2 * 2 * kBusRecordBytes;
    add_rows<2 * kBusRecordBytes / sizeof(Words)>(block.first(in_pairs));
    if (records % 2 != 0) {
      // A sixth word would count as one of the sums: zeros are before the five.
      std::array<std::uint8_t, kBusRecordBytes + sizeof(std::uint64_t)> last{};
      std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(in_pairs), kBusRecordBytes,
                  last.end() - kBusRecordBytes);
      sum_of_sums_ -= sum_;
      add_rows<sizeof last / sizeof(Words)>(last);
    }
    return records;
  }

  /// Two words, as processors add them at once.
  using Words = std::uint64_t __attribute__((vector_size(16)));

  /// Rows of kPairs pairs of words, whose columns go into the sums. To add each word to the sum,
  /// and then the sum to that of the sums, is to add up columns: of n rows each word goes into the
  /// second sum once for itself and for each word after it, and the first sum as often as there
  /// are words.
  template <std::size_t kPairs>
  void add_rows(std::span<const std::uint8_t> rows) {
    constexpr std::size_t kRowBytes = kPairs * sizeof(Words), kRowWords = 2 * kPairs;
    static_assert(sizeof(Words) == 2 * sizeof(std::uint64_t));
    std::array<Words, kPairs> column{}, behind{};
    for (std::size_t at = 0; at < rows.size(); at += kRowBytes) {
      std::array<Words, kPairs> row;
      std::memcpy(row.data(), rows.subspan(at).data(), kRowBytes);
      for (std::size_t k = 0; k < kPairs; ++k) {
        behind[k] += column[k];
        column[k] += row[k];
      }
    }
    std::array<std::uint64_t, kRowWords> total, totals_behind;
    std::memcpy(total.data(), column.data(), sizeof total);
    std::memcpy(totals_behind.data(), behind.data(), sizeof totals_behind);
    add_columns(rows.size() / kRowBytes, total, totals_behind);
  }

  /// Adds up each column of the rows, and the running totals before each row.
  template <std::size_t kWords>
  void add_columns(std::uint64_t rows, const std::array<std::uint64_t, kWords>& column,
                   const std::array<std::uint64_t, kWords>& behind) {
    sum_of_sums_ += rows * kWords * sum_;
    for (std::size_t word = 0; word < kWords; ++word) {
      sum_of_sums_ += kWords * behind[word] + (kWords - word) * column[word];
      sum_ += column[word];
    }
  }

  void check_end() {
    const auto block = source_.next();
    const BusRecord end = unpack_bus_record(block.first<kBusRecordBytes>());
    ByteReader in(end.data, input_->name());
    const std::uint64_t sum = in.u64("sum");
    const std::uint64_t sum_of_sums = in.u64("sum of sums");
    if (end.instructions != records_) {
      throw FormatError(input_->name(), source_.offset(),
                        "end record: expected a count of " + std::to_string(records_) +
                            " records, found " + std::to_string(end.instructions));
    }
    if (end.clock != 0 || end.address != 0 || end.iterations != 0 || end.flags != 0 ||
        end.burst != 0 || end.size != kBusRecordData) {
      throw FormatError(input_->name(), source_.offset(),
                        "end record: expected zeros in unused fields, found other bytes");
    }
    if (sum != sum_ || sum_of_sums != sum_of_sums_) {
      throw FormatError(input_->name(), source_.offset(),
                        "end record: the sums over the records differ, the capture is damaged");
    }
    if (block.size() != kBusRecordBytes) {
      throw FormatError(input_->name(), where(1), "records follow the end record");
    }
    source_.next();  // throws for the part of one
  }

  BusRecordSource source_;
  std::uint64_t records_ = 0, sum_ = 0, sum_of_sums_ = 0;
  // Rows of the last blocks that are not in the sums yet.
  std::uint64_t rows_ = 0;
  SimdRecords::Row column_{}, behind_{};
};

}  // namespace

std::uint64_t native_header_sum(std::span<const std::uint8_t, kNativeFieldBytes> fields) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::uint8_t byte : fields) sum = (sum ^ byte) * 0x100000001b3;
  return sum;
}

int detect_native(const CaptureProbe& probe) {
  const bool magic = probe.prefix.size() >= kNativeMagic.size() &&
                     std::equal(kNativeMagic.begin(), kNativeMagic.end(), probe.prefix.begin());
  return magic ? 100 : 0;
}

std::unique_ptr<RecordFile> make_native_record_file(std::unique_ptr<InputStream> input) {
  return std::make_unique<NativeRecordFile>(std::move(input));
}

bool native_shows_processors(const std::string& path) {
  constexpr std::size_t kVersionAt = 8;
  const std::vector<std::uint8_t> head = read_head(path, kNativeFieldBytes);
  return head.size() == kNativeFieldBytes && head[kVersionAt] == kNativeProcessorsVersion &&
         head[kVersionAt + 1] == 0;
}

std::unique_ptr<CaptureReader> open_native_capture(const std::vector<std::string>& paths,
                                                   const CaptureOptions& options) {
  if (!paths.empty() && native_shows_processors(paths.front()))
    return open_processor_records(paths, options);
  return open_record_capture("native", paths, options, make_native_record_file);
}

}  // namespace citcat
