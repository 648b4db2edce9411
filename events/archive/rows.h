#pragma once
// Rows of a chunk, which are stored column by column (formats/io/column.h).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/column.h"

namespace citcat {

/// Values are collected row by row through `cell`, in the same order as RowReader gives them back,
/// so that the two sides of a format read alike.
class RowWriter {
 public:
  void begin_row() { next_ = 0; }
  void cell(std::uint64_t value) {
    if (next_ == columns_.size()) columns_.emplace_back();
    columns_[next_++].push_back(value);
  }
  void write(ByteWriter& out) const {
    for (const std::vector<std::uint64_t>& column : columns_) write_column(out, column);
  }

 private:
  std::vector<std::vector<std::uint64_t>> columns_;
  std::size_t next_ = 0;
};

/// Throws FormatError where a column has not `rows` values. `field` names them in messages.
class RowReader {
 public:
  RowReader(ByteReader& in, std::size_t rows, std::size_t columns, std::string_view field)
      : in_(in), field_(field) {
    for (std::size_t i = 0; i < columns; ++i) columns_.push_back(read_column(in, rows, field));
  }
  void begin_row(std::size_t row) {
    row_ = row;
    next_ = 0;
  }
  /// The next cell of the row; more than `max` throws.
  template <typename T>
  T cell(T max) {
    const std::uint64_t value = columns_[next_++][row_];
    if (value > static_cast<std::uint64_t>(max)) {
      in_.fail(std::string(field_) + ": expected values up to " +
               std::to_string(static_cast<std::uint64_t>(max)) + ", found " +
               std::to_string(value));
    }
    return static_cast<T>(value);
  }
  std::uint64_t cell() { return columns_[next_++][row_]; }

 private:
  ByteReader& in_;
  std::string_view field_;
  std::vector<std::vector<std::uint64_t>> columns_;
  std::size_t row_ = 0;
  std::size_t next_ = 0;
};

}  // namespace citcat
