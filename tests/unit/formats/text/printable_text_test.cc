// Texts from elsewhere do nothing but be read.

#include "formats/text/printable_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/io/json_text.h"

namespace citcat {
namespace {

using namespace std::string_literals;

TEST(PrintableText, LeavesWhatPeopleRead) {
  for (const std::string& text :
       {"plain"s, ""s, "Größe, 漢字, עברית"s, "\xf0\x9f\x90\x88"s, "a b\"'<>&;="s}) {
    EXPECT_EQ(printable_text(text), text);
  }
}

TEST(PrintableText, MakesVisibleWhatIsNotSeen) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\r\tc\x7f", "a\\x0ab\\x0d\\x09c\\x7f"},
      {"a\0b"s, "a\\x00b"},
      {"\xc2\x9b", "\\u{9b}"},  // CSI of 8 bits
      {"x\xe2\x80\xae"
       "fdp.exe",
       "x\\u{202e}fdp.exe"},  // right-to-left override
      {"\xe2\x81\xa6\xe2\x81\xa9", "\\u{2066}\\u{2069}"},
      {"\xe2\x80\x8b\xef\xbb\xbf\xc2\xad", "\\u{200b}\\u{feff}\\u{ad}"},
      {"\xe2\x80\xa8", "\\u{2028}"},       // line separator
      {"\xf3\xa0\x81\x81", "\\u{e0041}"},  // a tag
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable_text(text), shown);
  EXPECT_EQ(printable_text("a\nb\tc\r", "\n\t"), "a\nb\tc\\x0d");
}

/// Bytes that are no UTF-8 mean something to terminals of 8 bits.
TEST(PrintableText, ShowsBytesThatAreNoCharacters) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x9b"
       "31m",
       "\\x9b31m"},
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc0\x8a", "\\xc0\\x8a"},  // a line feed, overlong
      {"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},  // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xe2\x80", "\\xe2\\x80"},
      {"\xe2\x80"
       "a",
       "\\xe2\\x80a"},
  };
  for (const auto& [text, shown] : cases) EXPECT_EQ(printable_text(text), shown);
}

TEST(PrintableText, JsonIsTheSameJson) {
  const nlohmann::ordered_json value = {{"a\x1b", "x\xe2\x80\xae\n\xc2\x9b"},
                                        {"tag", "\xf3\xa0\x81\x81ü"}};
  const std::string text = json_text(value);
  EXPECT_EQ(text, "{\"a\\u001b\":\"x\\u202e\\n\\u009b\",\"tag\":\"\\udb40\\udc41ü\"}");
  EXPECT_EQ(nlohmann::ordered_json::parse(text), value);
  EXPECT_EQ(nlohmann::ordered_json::parse(json_text(value, 2)), value);
}

TEST(CsvField, IsQuotedWhereItMust) {
  EXPECT_EQ(csv_field("a b"), "a b");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"") << "CR alone ends a line to many a reader";
}

TEST(Formula, IsToldFromNumbersAndDashes) {
  for (const char* const text : {"=1", "=", "+cmd", "-a", "@SUM(A1)", "-1+2", "\t=1", "\r=1"}) {
    EXPECT_TRUE(is_formula(text)) << text;
  }
  for (const char* const text : {"", "-", "+", "-12", "+1.5", "a=1", "c0100000", "0", " =1"}) {
    EXPECT_FALSE(is_formula(text)) << text;
  }
}

}  // namespace
}  // namespace citcat
