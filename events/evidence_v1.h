#pragma once
// Evidence as archives held it before EVD2 chunks: each field of the transactions a column.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "events/bus_transaction.h"
#include "formats/byte_reader.h"

namespace citcat {

/// A decoded EVID chunk.
class EvidenceChunkV1 {
 public:
  /// Throws FormatError when `in` is not a whole payload of an EVID chunk.
  explicit EvidenceChunkV1(ByteReader& in);

  /// As EvidenceChunk::next_block().
  std::size_t next_block(std::span<BusTransaction> out);
  /// The same, each of them one in `parts`.
  std::size_t next_lines(std::span<BusTransaction> out, std::span<std::uint8_t> parts);

 private:
  struct Shape {
    BusOp op = BusOp::code_read;
    std::uint8_t size = 0;
    std::uint16_t flags = 0;
  };
  void read_shapes(ByteReader& in, std::size_t count);
  BusTransaction next();

  std::vector<Shape> shapes_;
  std::vector<std::uint64_t> shape_, index_, address_, clock_, instruction_, iteration_;
  std::vector<std::uint8_t> data_;
  std::size_t at_ = 0, clock_at_ = 0, position_at_ = 0, data_at_ = 0;
  std::uint64_t next_index_ = 0;
  std::array<std::uint32_t, kBusOpCount> last_address_{};
};

}  // namespace citcat
