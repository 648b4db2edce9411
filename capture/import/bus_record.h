#pragma once
// Checks bus records and decodes them into transactions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "capture/import/simd_records.h"
#include "events/access_run.h"
#include "events/bus_transaction.h"
#include "events/recording.h"
#include "formats/captures/bus_record.h"
#include "formats/io/input.h"
#include "formats/io/simd_vectors.h"

namespace citcat {

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
  cut = 14,       ///< last of a capture that was interrupted; data[0] says why, no transaction
  stand_in = 15,  ///< of earlier versions: `address` stands for the page in the data from here on
  reached = 21,   ///< after the last transaction: how far the processor has come by the end
  high = 22,      ///< `address`: the upper half of memory addresses from here on; no transaction
  end = 255,      ///< native format only: the last record, see docs/formats/capture.md
};

/// Name in the CSV form ("MEM_RD"), or "" when the code has none.
std::string_view bus_record_type_name(std::uint8_t type);
/// The code of a name of the CSV form, or 0.
std::uint8_t bus_record_type_of(std::string_view name);
std::uint8_t bus_record_type_of(BusOp op);
/// The flags of a record of the transaction.
std::uint8_t bus_record_flags_of(const BusTransaction& transaction);

/// The code of an interrupted ending in data[0] of a `cut` record, and the reverse (`unknown` for
/// no known code).
std::uint8_t cut_code(Ending ending);
Ending ending_of_cut(std::uint8_t code);

/// The page that a `stand_in` record's address stands for.
PhysAddr stood_for(const BusRecord& record);
/// The record that gives memory addresses another upper half.
BusRecord high_record(std::uint32_t upper);
/// The record that says how far the processor has come.
BusRecord reached_record(const Position& position);

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

/// Turns records into transactions: counts them, unwraps the clock, and remembers what they say
/// about the machine's cache.
class BusRecordDecoder {
 public:
  /// Decodes the first of `records`, whole ones, as far as they are correct accesses to memory of
  /// kinds that decode() had before. Returns how many; the next one is for check_bus_record() and
  /// decode(). `out` has room for all. `fields` are the same in all calls of a segment.
  std::size_t decode_plain(std::span<const std::uint8_t> records, const BusRecordFields& fields,
                           std::span<BusTransaction> out);
  /// The first of `records`, as far as they are what decode_plain() takes and go on from each
  /// other: all are counted or none is, and the clock does not wrap. Valid until the next call of
  /// any member but take(), which goes beyond it.
  AccessRun run(std::span<const std::uint8_t> records, const BusRecordFields& fields);
  void take(const AccessRun& run);
  /// Decodes a record that was found correct.
  void decode(const BusRecord& record, const BusRecordFields& fields, BusTransaction& out);

  /// The cache the records so far give away. Without a single line burst no cache can be seen.
  BusModel seen() const;
  /// Whether the record that was decoded last added something to seen().
  bool learnt() const { return learnt_; }
  /// The next capture segment begins: its clock starts again, and its fields may differ.
  void begin_segment() { high_clock_ = 0, last_clock_ = 0, kinds_ = {}, new_kinds_ = true; }
  std::uint64_t count() const { return count_; }

 private:
  /// Records that have type, size, flags and burst in common; few are met in a capture. They are
  /// decoded alike, and what can be wrong with one is in its address and data alone.
  struct Kind {
    Kind() = default;
    /// The kind of a correct record `r`, which was decoded to `t` (kPositionKnown aside).
    Kind(const BusRecord& r, const BusTransaction& t, std::uint32_t bus_bytes);

    /// Type, size, flags and burst as one number.
    static std::uint32_t key_of(const BusRecord& r) {
      return r.type | std::uint32_t{r.size} << 8 | std::uint32_t{r.flags} << 16 |
             std::uint32_t{r.burst} << 24;
    }
    /// A perfect hash for all kinds of single transfers of up to 8 bytes and of line parts that a
    /// monitor may report; the factor was found by search.
    static std::size_t slot_of(std::uint32_t key) { return key * 0xb7115c03U >> 24; }
    /// Whether `r` is a correct record of this kind. One combined condition, because the host
    /// cannot predict branches on its parts.
    bool takes(const BusRecord& r) const {
      std::array<std::uint64_t, 2> data, mask;
      std::memcpy(data.data(), r.data.data(), sizeof data);
      std::memcpy(mask.data(), beyond.data(), sizeof mask);
      const std::uint64_t wrong = (data[0] & mask[0]) | (data[1] & mask[1]);
      return (wrong | (key_of(r) ^ key) | ((r.address & within) > last ? 1U : 0U)) == 0;
    }

    static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

    std::uint64_t key = kNoKey;  ///< of no record as long as there is none of this kind
    std::uint8_t size = 0;
    BusOp op = BusOp::code_read;
    std::uint16_t flags = 0;                            ///< of the transaction
    std::uint32_t within = 0;                           ///< address bits below the transfer's unit
    std::uint32_t last = 0;                             ///< value of these that leaves room
    std::array<std::uint8_t, kBusRecordData> beyond{};  ///< data bits that must be zero
  };

  void decode_kind(const BusRecord& record, BusTransaction& out) const;
  void learn(const BusRecord& record);
  std::uint32_t clock_before(const AccessRun& run, std::size_t i) const;
  std::size_t take_wide(AccessRun& run);
  bool take_all(AccessRun& run, std::size_t first, std::size_t count);
  std::size_t take_some(AccessRun& run, std::size_t first, bool positions);
  void fill_columns(const AccessRun& run, std::size_t first, std::size_t end);

  std::uint64_t count_ = 0;
  std::uint64_t high_clock_ = 0;
  std::uint32_t last_clock_ = 0;
  bool learnt_ = false;
  static constexpr std::uint8_t kSecondPart = 128;
  std::uint8_t shown_ = 0;   ///< flags of line records so far, and kSecondPart
  std::uint8_t widest_ = 0;  ///< largest single transfer
  std::array<Kind, 256> kinds_{};
  /// The same for runs; number_ has what each record of one is.
  RunKinds run_kinds_{};
  std::array<std::uint8_t, AccessRun::kMax> number_{};
  const bool is_wide_ = has_simd_vectors();
  SimdRecords wide_;
  bool new_kinds_ = false;  ///< wide_ does not know all of kinds_
  AccessColumns columns_;
};

/// Reads raw records from a stream, many at a time.
class BusRecordSource {
 public:
  explicit BusRecordSource(InputStream& input) : input_(&input) {}
  /// Some whole records, kBusRecordBytes each, valid until the next call; empty at the clean end.
  /// FormatError where the stream ends inside a record, unless an interrupted writer left it.
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
