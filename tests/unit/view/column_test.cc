// Columns are read back as they were written, whatever foresees them.

#include "view/exported/column.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "formats/io/byte_reader.h"
#include "view/exported/deflate.h"

namespace citcat::view {
namespace {

struct Row {
  std::uint64_t value;
  std::vector<std::uint64_t> inputs;
};

/// By the words of docs/formats/view-page.md.
std::vector<std::uint64_t> read_back(const Column& column, const std::vector<Row>& rows) {
  ByteReader in(column.written(), "column", 0);
  std::vector<std::uint64_t> values;
  std::uint64_t last = 0, before = 0, last_input = 0;
  for (const Row& row : rows) {
    std::uint64_t foreseen = last, input = 0;
    if (column.foresight() == 1) foreseen = last + (last - before);
    if (column.foresight() >= 2) {
      input = row.inputs[column.foresight() - 2];
      foreseen = input + (last - last_input);
    }
    const auto value = foreseen + static_cast<std::uint64_t>(in.signed_varint("number"));
    values.push_back(value);
    before = last;
    last = value;
    last_input = input;
  }
  return values;
}

std::vector<std::uint64_t> values_of(const std::vector<Row>& rows) {
  std::vector<std::uint64_t> values;
  for (const Row& row : rows) values.push_back(row.value);
  return values;
}

Column written(const std::vector<Row>& rows) {
  Column column;
  for (const Row& row : rows) column.weigh(row.value, row.inputs);
  column.choose();
  for (const Row& row : rows) column.write(row.value, row.inputs);
  return column;
}

TEST(Column, ChoosesWhatForeseesItBest) {
  std::vector<Row> same, stride, by_input;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::vector<std::uint64_t> inputs{i * i * 977, i * i * i * 31};
    same.push_back({0xdeadbeef, inputs});
    stride.push_back({0x1000 + 24 * i, inputs});
    by_input.push_back({inputs[1] - 8, inputs});
  }
  EXPECT_EQ(written(same).foresight(), 0);
  EXPECT_EQ(written(stride).foresight(), 1);
  EXPECT_EQ(written(by_input).foresight(), 3);
  for (const auto& rows : {same, stride, by_input}) {
    const Column column = written(rows);
    EXPECT_EQ(read_back(column, rows), values_of(rows));
    // One byte for each, and a few more at the beginning.
    EXPECT_LT(column.written().size(), rows.size() + 20);
  }
}

TEST(Column, TakesNumbersOf64BitsAroundTheEnd) {
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < 50; ++i) {
    rows.push_back({(i % 2 == 0 ? ~std::uint64_t{0} - i : i) * 0x8000000000000001u, {~i, i << 63}});
  }
  EXPECT_EQ(read_back(written(rows), rows), values_of(rows));
}

TEST(Base64, IsThatOfItsSpecification) {
  // RFC 4648, chapter 10.
  const auto of = [](const std::string& text) {
    return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foob"), "Zm9vYg==");
  EXPECT_EQ(of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace citcat::view
