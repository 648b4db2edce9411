#pragma once
// The 40-byte bus record, which both the headerless captures of a virtual bus monitor and the
// native capture format are made of. docs/formats/capture.md has the layout.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "events/bus_transaction.h"
#include "events/recording.h"
#include "formats/input.h"

namespace citcat {

inline constexpr std::size_t kBusRecordBytes = 40;
/// `instructions` of a record whose position was not counted.
inline constexpr std::uint64_t kNoCount = ~std::uint64_t{0};
/// Data bytes in one record: half a 32-byte line.
inline constexpr std::size_t kBusRecordData = 16;

/// Codes of the `type` field.
enum class BusRecordType : std::uint8_t {
  code_read = 1,
  data_read = 2,
  data_write = 3,
  io_read = 4,
  io_write = 5,
  interrupt_acknowledge = 6,
  halt = 7,
  shutdown = 8,
  flush = 9,
  nmi = 10,
  reset = 11,
  smi = 12,
  instruction_start = 13,
  cut = 14,   ///< last of a capture that was interrupted; data[0] says why, no transaction
  end = 255,  ///< native format only: the last record, see docs/formats/capture.md
};

/// Name in the CSV form ("MEM_RD"), or "" when the code has none.
std::string_view bus_record_type_name(std::uint8_t type);
/// The code of a name of the CSV form, or 0.
std::uint8_t bus_record_type_of(std::string_view name);
std::uint8_t bus_record_type_of(BusOp op);

/// What stands in data[0] of a `cut` record for an interrupted ending, and back (`unknown` for no
/// known code).
std::uint8_t cut_code(Ending ending);
Ending ending_of_cut(std::uint8_t code);

/// A record as it stands in a file, not yet judged.
struct BusRecord {
  std::uint64_t instructions = 0;  ///< completed before it, or kNoCount
  std::uint32_t clock = 0;         ///< wraps
  std::uint32_t address = 0;
  std::uint32_t iterations = 0;  ///< of the REP instruction in flight, completed
  std::uint8_t type = 0;
  std::uint8_t size = 0;
  std::uint8_t flags = 0;
  std::uint8_t burst = 0;  ///< index of the 16-byte part within its line
  std::array<std::uint8_t, kBusRecordData> data{};
};

inline BusRecord unpack_bus_record(std::span<const std::uint8_t, kBusRecordBytes> bytes) {
  // Records are moved as whole words; hosts with another byte order would need swaps here.
  static_assert(std::endian::native == std::endian::little);
  static_assert(sizeof(BusRecord) == kBusRecordBytes && std::is_trivially_copyable_v<BusRecord> &&
                offsetof(BusRecord, type) == 20 && offsetof(BusRecord, data) == 24);
  // By fields, because a load across two of the stores of a copy would wait for both.
  const auto load = [&](auto& field, std::size_t offset) {
    std::memcpy(&field, bytes.subspan(offset).data(), sizeof field);
  };
  BusRecord record;
  load(record.instructions, offsetof(BusRecord, instructions));
  load(record.clock, offsetof(BusRecord, clock));
  load(record.address, offsetof(BusRecord, address));
  load(record.iterations, offsetof(BusRecord, iterations));
  load(record.type, offsetof(BusRecord, type));
  load(record.size, offsetof(BusRecord, size));
  load(record.flags, offsetof(BusRecord, flags));
  load(record.burst, offsetof(BusRecord, burst));
  load(record.data, offsetof(BusRecord, data));
  return record;
}

/// What is wrong with a record, naming the field, or "" when nothing is. A single transfer that
/// crosses an aligned word of `bus_bytes`, unknown codes, data beyond the size and the like are
/// wrong: they show a damaged file, or one that is something else.
std::string check_bus_record(const BusRecord& record, std::uint32_t bus_bytes);

/// The common cases of the same check, quickly: false when check_bus_record() has to be asked.
inline bool is_plain_memory_record(const BusRecord& r, std::uint32_t bus_bytes) {
  constexpr std::uint8_t kFlags =
      kLine | kWriteBack | kUncacheable | kSnoop | kStateWindow | kStoreFill;
  if (r.type < 1 || r.type > 3 || (r.flags & ~kFlags) != 0) return false;
  if ((r.flags & kLine) != 0) {
    return r.size == kBusRecordData && r.address % kBusRecordData == 0 && r.burst <= 1;
  }
  std::uint64_t low, high;
  std::memcpy(&low, r.data.data(), 8);
  std::memcpy(&high, r.data.data() + 8, 8);
  // Nothing beyond the size; a bus is at most 8 bytes wide.
  const bool padded = high == 0 && (r.size >= 8 || low >> (8 * r.size) == 0);
  return padded && r.size != 0 && (r.address & (bus_bytes - 1)) + r.size <= bus_bytes;
}

/// Turns checked records into transactions: counts them, unwraps the clock, and remembers what they
/// tell of the machine's cache.
class BusRecordDecoder {
 public:
  void decode(const BusRecord& record, BusTransaction& out) {
    if (record.clock < last_clock_) high_clock_ += std::uint64_t{1} << 32;
    last_clock_ = record.clock;
    out.index = count_++;
    out.clock = high_clock_ + record.clock;
    out.address = PhysAddr{record.address};
    out.size = record.size;
    const bool counted = record.instructions != kNoCount;
    out.position = counted ? Position{record.instructions, record.iterations} : Position{};
    std::memcpy(out.data.data(), record.data.data(), kBusRecordData);
    std::memset(out.data.data() + kBusRecordData, 0, out.data.size() - kBusRecordData);
    decode_kind(record, out);
    out.flags |= static_cast<std::uint16_t>(kClockKnown | (counted ? kPositionKnown : 0));
  }

  /// The cache the records so far give away. Without a single line burst there is none to see.
  BusModel seen() const;
  /// Whether seen() would tell more than it did after the record before.
  bool learnt() const { return learnt_; }
  /// The next capture segment begins: its clock starts anew.
  void begin_segment() { high_clock_ = 0, last_clock_ = 0; }
  std::uint64_t count() const { return count_; }

 private:
  void decode_kind(const BusRecord& record, BusTransaction& out) {
    constexpr std::uint8_t kFlags =
        kLine | kWriteBack | kUncacheable | kSnoop | kStateWindow | kStoreFill;
    learnt_ = false;
    if (record.type > 3) {
      decode_other(record, out);
      return;
    }
    constexpr std::array kOps{BusOp::code_read, BusOp::data_read, BusOp::data_write};
    out.op = kOps[record.type - 1u];
    out.flags = record.flags & kFlags;
    // What the records show of the cache is new only a few times in a capture.
    const bool line = (record.flags & kLine) != 0;
    const unsigned shown = (record.flags & kFlags) | (record.burst == 1 ? kSecondPart : 0u);
    if (line ? (shown & ~shown_) != 0 : record.size > widest_) learn(record);
  }
  void decode_other(const BusRecord& record, BusTransaction& out) const;
  void learn(const BusRecord& record);

  std::uint64_t count_ = 0;
  std::uint64_t high_clock_ = 0;
  std::uint32_t last_clock_ = 0;
  bool learnt_ = false;
  static constexpr std::uint8_t kSecondPart = 128;
  std::uint8_t shown_ = 0;   ///< flags of line records so far, and kSecondPart
  std::uint8_t widest_ = 0;  ///< largest single transfer
};

/// Reads raw records from a stream, many at a time.
class BusRecordSource {
 public:
  explicit BusRecordSource(InputStream& input) : input_(&input) {}
  /// Some whole records, kBusRecordBytes each, valid until the next call; empty at the clean end.
  /// FormatError where the stream ends inside a record.
  std::span<const std::uint8_t> next();
  /// Takes the last `records` of what next() returned back, to be returned again.
  void put_back(std::size_t records) { used_ -= records * kBusRecordBytes; }
  /// Offset in the stream of the first record next() returned last.
  std::uint64_t offset() const { return input_->offset(); }
  const std::string& name() const { return input_->name(); }

 private:
  InputStream* input_;
  std::size_t used_ = 0;  ///< bytes handed out, not yet consumed
};

}  // namespace citcat
