#include "formats/io/column.h"

#include <algorithm>
#include <array>

#include "formats/io/zstd_stream.h"

namespace citcat {

namespace {

constexpr std::array<ColumnForm, 5> kMeasuredForms{ColumnForm::plain, ColumnForm::delta,
                                                   ColumnForm::delta_delta, ColumnForm::byte_planes,
                                                   ColumnForm::delta_planes};
/// A form that is best on this many values is taken for all.
constexpr std::size_t kMeasuredValues = std::size_t{1} << 12;
constexpr ZstdOptions kMeasuringCompression{3, 0};

std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}

std::uint64_t unzigzag(std::uint64_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }

std::vector<std::uint64_t> differences(std::span<const std::uint64_t> values) {
  std::vector<std::uint64_t> result;
  result.reserve(values.size());
  std::uint64_t previous = 0;
  for (const std::uint64_t value : values) {
    result.push_back(zigzag(value - previous));
    previous = value;
  }
  return result;
}

void write_varints(ByteWriter& out, std::span<const std::uint64_t> values) {
  for (const std::uint64_t value : values) out.varint(value);
}

void write_planes(ByteWriter& out, std::span<const std::uint64_t> values) {
  const std::uint64_t largest =
      values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  unsigned width = 1;
  // At least one plane, so that a reader can ask for a byte of input for each value.
  while (width < 8 && largest >> (8 * width) != 0) ++width;
  out.u8(static_cast<std::uint8_t>(width));
  for (unsigned plane = 0; plane < width; ++plane) {
    for (const std::uint64_t value : values) {
      out.u8(static_cast<std::uint8_t>(value >> (8 * plane)));
    }
  }
}

void write_delta_delta(ByteWriter& out, std::span<const std::uint64_t> values) {
  std::uint64_t previous = 0;
  std::uint64_t step = 0;
  for (const std::uint64_t value : values) {
    const std::uint64_t difference = value - previous;
    out.varint(zigzag(difference - step));
    previous = value;
    step = difference;
  }
}

std::vector<std::uint64_t> read_varints(ByteReader& in, std::size_t count, std::string_view field) {
  if (count > in.remaining()) {
    in.fail(std::string(field) + ": expected " + std::to_string(count) + " numbers, found " +
            std::to_string(in.remaining()) + " bytes");
  }
  std::vector<std::uint64_t> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) values.push_back(in.varint(field));
  return values;
}

std::vector<std::uint64_t> read_planes(ByteReader& in, std::size_t count, std::string_view field) {
  const unsigned width = in.u8(field);
  if (width == 0 || width > 8) {
    in.fail(std::string(field) + ": expected 1 to 8 byte planes, found " + std::to_string(width));
  }
  const std::span<const std::uint8_t> first = in.bytes(count, field);
  std::vector<std::uint64_t> values(first.begin(), first.end());
  for (unsigned plane = 1; plane < width; ++plane) {
    const std::span<const std::uint8_t> bytes = in.bytes(count, field);
    for (std::size_t i = 0; i < count; ++i) values[i] |= std::uint64_t{bytes[i]} << (8 * plane);
  }
  return values;
}

void undo_differences(std::vector<std::uint64_t>& values) {
  std::uint64_t previous = 0;
  for (std::uint64_t& value : values) {
    previous += unzigzag(value);
    value = previous;
  }
}

void undo_delta_delta(std::vector<std::uint64_t>& values) {
  std::uint64_t previous = 0;
  std::uint64_t step = 0;
  for (std::uint64_t& value : values) {
    step += unzigzag(value);
    previous += step;
    value = previous;
  }
}

ColumnForm best_form(std::span<const std::uint64_t> values) {
  const auto sample = values.first(std::min(values.size(), kMeasuredValues));
  ColumnForm best = ColumnForm::plain;
  std::size_t best_bytes = ~std::size_t{0};
  // To make one takes longer than to compress with it what is measured.
  static thread_local ZstdCompressor compressor;
  for (const ColumnForm form : kMeasuredForms) {
    ByteWriter trial;
    write_column(trial, sample, form);
    const std::size_t bytes = compressor.compress(trial.view(), kMeasuringCompression).size();
    if (bytes < best_bytes) {
      best_bytes = bytes;
      best = form;
    }
  }
  return best;
}

}  // namespace

void write_column(ByteWriter& out, std::span<const std::uint64_t> values) {
  const bool constant = std::all_of(values.begin(), values.end(),
                                    [&](std::uint64_t v) { return v == values.front(); });
  write_column(out, values, constant ? ColumnForm::constant : best_form(values));
}

void write_column(ByteWriter& out, std::span<const std::uint64_t> values, ColumnForm form) {
  if (values.empty()) return;
  out.u8(static_cast<std::uint8_t>(form));
  switch (form) {
    case ColumnForm::constant:
      out.varint(values.front());
      break;
    case ColumnForm::plain:
      write_varints(out, values);
      break;
    case ColumnForm::delta:
      write_varints(out, differences(values));
      break;
    case ColumnForm::delta_delta:
      write_delta_delta(out, values);
      break;
    case ColumnForm::byte_planes:
      write_planes(out, values);
      break;
    case ColumnForm::delta_planes:
      write_planes(out, differences(values));
      break;
  }
}

std::vector<std::uint64_t> read_column(ByteReader& in, std::size_t count, std::string_view field) {
  if (count == 0) return {};
  const std::uint8_t form = in.u8(field);
  std::vector<std::uint64_t> values;
  switch (static_cast<ColumnForm>(form)) {
    case ColumnForm::constant:
      return std::vector<std::uint64_t>(count, in.varint(field));
    case ColumnForm::plain:
      return read_varints(in, count, field);
    case ColumnForm::delta:
      values = read_varints(in, count, field);
      undo_differences(values);
      return values;
    case ColumnForm::delta_delta:
      values = read_varints(in, count, field);
      undo_delta_delta(values);
      return values;
    case ColumnForm::byte_planes:
      return read_planes(in, count, field);
    case ColumnForm::delta_planes:
      values = read_planes(in, count, field);
      undo_differences(values);
      return values;
  }
  in.fail(std::string(field) + ": expected a column form of 0 to 5, found " + std::to_string(form));
}

}  // namespace citcat
