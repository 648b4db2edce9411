#include "formats/io/column.h"

#include <gtest/gtest.h>

#include <random>

#include "formats/io/error.h"

namespace citcat {
namespace {

std::vector<std::vector<std::uint64_t>> shapes_of_data() {
  std::mt19937_64 random(3);
  std::vector<std::vector<std::uint64_t>> all{{}, {5}, {7, 7, 7, 7}};
  std::vector<std::uint64_t> noise, steps, slow, wide;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    noise.push_back(random());
    steps.push_back(1000 * i);
    slow.push_back(i * i + random() % 3);
    wide.push_back(random() >> random() % 64);
  }
  for (const auto& values : {noise, steps, slow, wide}) all.push_back(values);
  return all;
}

TEST(Column, GivesBackItsValuesInEveryForm) {
  for (const auto& values : shapes_of_data()) {
    for (const ColumnForm form : {ColumnForm::plain, ColumnForm::delta, ColumnForm::delta_delta,
                                  ColumnForm::byte_planes, ColumnForm::delta_planes}) {
      ByteWriter out;
      write_column(out, values, form);
      ByteReader in(out.view(), "column");
      EXPECT_EQ(read_column(in, values.size(), "values"), values);
      EXPECT_TRUE(in.at_end());
    }
  }
}

TEST(Column, GivesBackItsValuesInTheFormItChose) {
  for (const auto& values : shapes_of_data()) {
    ByteWriter out;
    write_column(out, values);
    ByteReader in(out.view(), "column");
    EXPECT_EQ(read_column(in, values.size(), "values"), values);
    EXPECT_TRUE(in.at_end());
  }
}

TEST(Column, TakesFewBytesForWhatRepeats) {
  ByteWriter out;
  write_column(out, std::vector<std::uint64_t>(100000, 42));
  EXPECT_LE(out.size(), 3U);
}

TEST(Column, RefusesAnUnknownFormAndMissingValues) {
  const std::vector<std::uint8_t> unknown{6, 0};
  ByteReader in(unknown, "column");
  EXPECT_THROW(read_column(in, 1, "values"), FormatError);
  for (std::uint8_t form = 1; form <= 5; ++form) {
    const std::vector<std::uint8_t> short_column{form, 1, 1};
    ByteReader cut(short_column, "column");
    EXPECT_THROW(read_column(cut, 1000000000, "values"), FormatError) << int{form};
  }
}

}  // namespace
}  // namespace citcat
