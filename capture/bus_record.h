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
/// The flags of a record of the transaction.
std::uint8_t bus_record_flags_of(const BusTransaction& transaction);

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

/// What holds for all records of a file.
struct BusRecordFields {
  std::uint32_t bus_bytes = 8;  ///< width of the data bus, or the widest that is believed
  bool positions = true;        ///< instructions were counted
  bool clock = true;
};

/// Turns records into transactions: counts them, unwraps the clock, and remembers what they tell of
/// the machine's cache.
class BusRecordDecoder {
 public:
  /// Decodes the first of `records`, whole ones, as far as they are correct accesses to memory of
  /// kinds that decode() had before. Returns how many; the next one is for check_bus_record() and
  /// decode(). `out` has room for all. `fields` are the same in all calls of a segment.
  std::size_t decode_plain(std::span<const std::uint8_t> records, const BusRecordFields& fields,
                           std::span<BusTransaction> out);
  /// Decodes a record that was found correct.
  void decode(const BusRecord& record, const BusRecordFields& fields, BusTransaction& out);

  /// The cache the records so far give away. Without a single line burst there is none to see.
  BusModel seen() const;
  /// Whether seen() would tell more than it did before the record decode() had last.
  bool learnt() const { return learnt_; }
  /// The next capture segment begins: its clock starts anew, and its fields may be others.
  void begin_segment() { high_clock_ = 0, last_clock_ = 0, kinds_ = {}; }
  std::uint64_t count() const { return count_; }

 private:
  /// Records that have type, size, flags and burst in common; few are met in a capture. They are
  /// decoded alike, and what can be wrong with one is in its address and data alone.
  struct Kind {
    Kind() = default;
    /// That of a correct record, with what it was decoded to but for kPositionKnown.
    Kind(const BusRecord& r, const BusTransaction& t, std::uint32_t bus_bytes);

    /// Different for kinds that are met together.
    static std::size_t slot_of(const BusRecord& r) {
      const unsigned low = (r.size ^ r.flags >> 1 ^ r.flags >> 3) & 15U;
      return low | (r.type & 3U) << 4 | (r.flags & 1U) << 6 | (r.burst & 1U) << 7;
    }
    /// Whether `r` is a correct record of this kind: one condition, because its parts cannot be
    /// foretold.
    bool takes(const BusRecord& r) const {
      std::uint64_t low, high;
      std::memcpy(&low, r.data.data(), 8);
      std::memcpy(&high, r.data.data() + 8, 8);
      const unsigned differs =
          (r.type ^ type) | (r.size ^ size) | (r.flags ^ raw_flags) | (r.burst ^ burst);
      const std::uint64_t beyond = (low & beyond_low) | (high & beyond_high);
      return (beyond | differs | ((r.address & within) > last ? 1U : 0U)) == 0;
    }

    std::uint16_t type = 256;  ///< of the record, as the next three; no record has this one
    std::uint8_t size = 0, raw_flags = 0, burst = 0;
    BusOp op = BusOp::code_read;
    std::uint16_t flags = 0;                        ///< of the transaction
    std::uint32_t within = 0;                       ///< address bits below the transfer's unit
    std::uint32_t last = 0;                         ///< value of these that leaves room
    std::uint64_t beyond_low = 0, beyond_high = 0;  ///< data bits that must be zero
  };

  void decode_kind(const BusRecord& record, BusTransaction& out) const;
  void learn(const BusRecord& record);

  std::uint64_t count_ = 0;
  std::uint64_t high_clock_ = 0;
  std::uint32_t last_clock_ = 0;
  bool learnt_ = false;
  static constexpr std::uint8_t kSecondPart = 128;
  std::uint8_t shown_ = 0;   ///< flags of line records so far, and kSecondPart
  std::uint8_t widest_ = 0;  ///< largest single transfer
  std::array<Kind, 256> kinds_{};
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
