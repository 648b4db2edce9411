#pragma once
// Evidence in the archive: some ten thousand transactions a chunk, each of their fields a column.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "formats/byte_reader.h"

namespace citcat {

/// Transactions of one evidence chunk. The data of reads and fetches is not kept: a replay gets it
/// from the image or the schedule.
inline constexpr std::size_t kEvidenceChunkTransactions = std::size_t{1} << 16;

/// Collects transactions until they are encoded.
class EvidenceColumns {
 public:
  EvidenceColumns();
  void add(const BusTransaction& transaction);
  std::size_t size() const { return shape_.size(); }
  /// Shapes are numbered with 16 bits, so that a stream of ever new ones ends a chunk early.
  bool full() const { return size() >= kEvidenceChunkTransactions || shapes_.size() >= 0xfff0; }
  /// The payload of an EVID chunk.
  std::vector<std::uint8_t> encode() const;

 private:
  std::uint16_t shape_of(const BusTransaction& transaction);

  std::vector<std::uint32_t> shapes_;  ///< distinct op, size and flags, packed
  std::vector<std::uint16_t> lookup_;  ///< hash of a shape -> its number in shapes_ + 1
  std::vector<std::uint16_t> shape_;   ///< of each transaction
  std::vector<std::uint64_t> index_, address_, clock_, instruction_, iteration_;
  std::array<std::uint32_t, kBusOpCount> last_address_{};
  std::uint64_t next_index_ = 0;
  std::vector<std::uint8_t> data_;
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
