#pragma once
// Evidence in the archive: some ten thousand transactions a chunk, each of their fields a column.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "formats/byte_reader.h"
#include "formats/byte_writer.h"

namespace citcat {

/// Transactions of one evidence chunk. The data of reads and fetches is not kept: a replay gets it
/// from the image or the schedule.
inline constexpr std::size_t kEvidenceChunkTransactions = std::size_t{1} << 16;

/// A column of an evidence chunk, packed as it grows: millions of transactions a second pass here.
/// Comes out as write_column() would write it in the form given, or constant where it is.
class GrowingColumn {
 public:
  enum class Form : std::uint8_t { plain, delta };
  explicit GrowingColumn(Form form) : form_(form) {}

  void add(std::span<const std::uint64_t> values);
  void write_to(ByteWriter& out) const;
  /// Forgets the values, not the memory they took.
  void clear();

 private:
  void put(std::span<const std::uint64_t> values);
  /// The first value that differs from those before, which so far were only counted.
  void spill();

  Form form_;
  bool constant_ = true;
  std::size_t count_ = 0;
  std::uint64_t first_ = 0, previous_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
};

/// Packs transactions into the columns of a chunk.
class EvidenceColumns {
 public:
  EvidenceColumns();
  /// As many transactions must be missing to a full chunk. The data of reads is not looked at.
  void add(std::span<const BusTransaction> transactions);
  std::size_t size() const { return shape_.size(); }
  bool full() const { return size() == kEvidenceChunkTransactions; }
  /// The payload of an EVID chunk.
  std::vector<std::uint8_t> encode() const;
  /// As newly made, but with the memory it has.
  void clear();

 private:
  /// A shape met lately and its number.
  struct Recent {
    std::uint32_t packed = 0;
    std::uint32_t number = kNone;
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  };
  void add_block(std::span<const BusTransaction> block);
  void add_data(std::span<const BusTransaction> block);
  std::uint16_t shape_of(std::uint32_t packed);
  std::uint16_t look_up(std::uint32_t packed);
  void grow_lookup();
  void write_shapes(ByteWriter& out) const;

  std::vector<std::uint32_t> shapes_;  ///< distinct ones
  std::vector<std::uint32_t> lookup_;  ///< hash of a shape -> its number in shapes_ + 1
  std::vector<std::uint16_t> shape_;   ///< number of each transaction's
  std::array<Recent, 64> recent_{};
  GrowingColumn index_{GrowingColumn::Form::plain}, address_{GrowingColumn::Form::plain},
      clock_{GrowingColumn::Form::delta}, instruction_{GrowingColumn::Form::delta},
      iteration_{GrowingColumn::Form::delta};
  std::array<std::uint32_t, kBusOpCount> last_address_{};
  std::uint64_t next_index_ = 0;
  std::vector<std::uint8_t> data_;
  std::size_t data_bytes_ = 0;  ///< of data_, which is longer
};

/// A decoded evidence chunk.
class EvidenceChunk {
 public:
  EvidenceChunk() = default;
  /// Throws FormatError when `in` is not a whole payload of an EVID chunk.
  explicit EvidenceChunk(ByteReader& in);

  std::size_t size() const { return shape_.size(); }
  /// The transactions in order; false after the last.
  bool next(BusTransaction& out);

 private:
  struct Shape {
    BusOp op = BusOp::code_read;
    std::uint8_t size = 0;
    std::uint16_t flags = 0;
  };
  void read_shapes(ByteReader& in, std::size_t count);

  std::vector<Shape> shapes_;
  std::vector<std::uint64_t> shape_, index_, address_, clock_, instruction_, iteration_;
  std::vector<std::uint8_t> data_;
  std::size_t at_ = 0, clock_at_ = 0, position_at_ = 0, data_at_ = 0;
  std::uint64_t next_index_ = 0;
  std::array<std::uint32_t, kBusOpCount> last_address_{};
};

}  // namespace citcat
