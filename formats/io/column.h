#pragma once
// Columns of numbers inside a chunk. Numbers of one kind are together, in the form that makes the
// chunk's zstd frame smallest.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat {

/// How the numbers of a column are written; the first byte of the column.
enum class ColumnForm : std::uint8_t {
  constant = 0,      ///< one varint: all are equal
  plain = 1,         ///< a varint each
  delta = 2,         ///< zigzag varint of the difference (mod 2^64) to the one before, first to 0
  delta_delta = 3,   ///< zigzag varint of the change of that difference
  byte_planes = 4,   ///< u8 width, then all lowest bytes, all second bytes ...
  delta_planes = 5,  ///< byte planes of the zigzag differences
};

/// Writes a column in the form that compresses best, found by compressing its first part in each.
/// The number of values is not stored.
void write_column(ByteWriter& out, std::span<const std::uint64_t> values);
/// Writes a column in a form the caller knows to be good.
void write_column(ByteWriter& out, std::span<const std::uint64_t> values, ColumnForm form);

/// The `count` values of a column. The caller has bounded `count`; a column of other than the
/// constant form also needs at least a byte of input for each value.
std::vector<std::uint64_t> read_column(ByteReader& in, std::size_t count, std::string_view field);

}  // namespace citcat
