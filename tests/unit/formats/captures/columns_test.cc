// Text of home-made sniffers, by the description of its columns.

#include "formats/captures/columns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr char kSniffer[] = R"({
  "comment": "an ISA sniffer",
  "comments": ["//", "*"], "skip_lines": 1, "sample_rate": "4 MHz", "more_columns": true,
  "columns": [{"skip": true}, {"name": "A", "bits": 4, "prefix": "A="},
              {"name": "D", "bits": 2, "radix": 10, "first_bit": 4}, {"name": "RD", "high": "R"}]})";

std::vector<int> column_levels(const std::string& text, const std::string& description) {
  const auto source = open_text_columns(
      std::make_unique<InputStream>(
          std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()), "file"),
      parse_text_columns(description, "d.json"));
  std::vector<int> levels;
  for (SampleBlock block; source->next(block);)
    levels.insert(levels.end(), block.bytes.begin(), block.bytes.end());
  return levels;
}

std::string columns_refusal(const std::string& text, const std::string& description) {
  try {
    column_levels(text, description);
  } catch (const FormatError& error) {
    return error.what();
  }
  return "";
}

TEST(Columns, AreReadAsTheirDescriptionSays) {
  const TextColumns columns = parse_text_columns(kSniffer, "d.json");
  const auto source = open_text_columns(
      std::make_unique<InputStream>(std::span<const std::uint8_t>(), "file"), columns);
  EXPECT_EQ(source->info().channels,
            (std::vector<std::string>{"A0", "A1", "A2", "A3", "D4", "D5", "RD"}));
  EXPECT_DOUBLE_EQ(source->info().sample_rate_hz, 4e6);
  EXPECT_EQ(column_levels("title\n// a comment\n\n1  A=F 2 R\n* more\n2 A=0x3 1 - MOV AX,BX\r\n",
                          kSniffer),
            (std::vector<int>{0x6f, 0x13}));
}

TEST(Columns, MayBeSeparatedByAnything) {
  EXPECT_EQ(column_levels("1|0|11\n0|1|01\n", R"({"separator": "|", "columns": [
      {"name": "CLK"}, {"name": "S0"}, {"name": "AD", "bits": 2, "radix": 2}]})"),
            (std::vector<int>{0xd, 0x6}));
}

TEST(Columns, ErrorsNameLineAndColumn) {
  const std::string wide = columns_refusal("title\n1 A=10 2 R\n", kSniffer);
  EXPECT_NE(wide.find("file:2:"), std::string::npos) << wide;
  EXPECT_NE(wide.find("column 2 ('A')"), std::string::npos) << wide;
  EXPECT_NE(columns_refusal("title\n1 F 2 R\n", kSniffer).find("found 'F'"), std::string::npos);
  EXPECT_NE(columns_refusal("title\n1 A=F\n", kSniffer).find("4 columns"), std::string::npos);
}

TEST(Columns, ADescriptionThatIsNoneIsRefused) {
  for (const char* text :
       {"{", "{}", R"({"columns": 3})", R"({"columns": [{}]})", R"({"columns": [{"name": 1}]})",
        R"({"columns": [{"name": "A", "radix": 7}]})",
        R"({"columns": [{"name": "A", "bits": 65}]})",
        R"({"columns": [{"name": "A"}], "colour": "red"})", R"({"columns": [{"skip": true}]})",
        R"({"columns": [{"name": "A"}], "separator": ", "})"})
    EXPECT_NE(columns_refusal("1\n", text), "") << text;
}

}  // namespace
}  // namespace citcat
