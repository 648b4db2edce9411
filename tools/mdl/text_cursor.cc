#include "tools/mdl/text_cursor.h"

#include <algorithm>
#include <cctype>

namespace citcat::mdl {

namespace {

constexpr std::size_t kMostDigits = 18, kMostHexDigits = 15;  // below 2^63

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool goes_on_name(char c) { return begins_name(c) || is_digit(c); }

std::size_t length_of(std::string_view text, bool (*is)(char)) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}

}  // namespace

void TextCursor::move_on(std::size_t length) {
  for (; length != 0; --length) {
    if (text()[offset_++] != '\n') continue;
    ++line_;
    line_begin_ = offset_;
  }
}

void TextCursor::skip_separators() {
  for (;;) {
    move_on(length_of(rest(), is_blank));
    if (!rest().starts_with("//")) return;
    move_on(std::min(rest().find('\n'), rest().size()));
  }
}

bool TextCursor::take(std::string_view sign, std::string_view unless) {
  if (!rest().starts_with(sign)) return false;
  const std::string_view behind = rest().substr(sign.size());
  if (!behind.empty() && unless.find(behind.front()) != std::string_view::npos) return false;
  move_on(sign.size());
  skip_separators();
  return true;
}

bool TextCursor::take_word(std::string_view word) {
  if (!rest().starts_with(word)) return false;
  const std::string_view behind = rest().substr(word.size());
  if (!behind.empty() && goes_on_name(behind.front())) return false;
  move_on(word.size());
  skip_separators();
  return true;
}

std::optional<std::string> TextCursor::take_name() {
  const std::size_t dollar = rest().starts_with('$') ? 1 : 0;
  const std::string_view word = rest().substr(dollar);
  if (word.empty() || !begins_name(word.front())) return std::nullopt;
  std::string name(rest().substr(0, dollar + length_of(word, goes_on_name)));
  move_on(name.size());
  skip_separators();
  return name;
}

std::optional<std::uint64_t> TextCursor::take_number() {
  const bool hexadecimal = rest().starts_with("0x") || rest().starts_with("0X");
  const std::size_t prefix = hexadecimal ? 2 : 0;
  const std::string_view digits = rest().substr(prefix);
  const std::size_t length = length_of(digits, hexadecimal ? is_hex_digit : is_digit);
  const bool goes_on = length < digits.size() && goes_on_name(digits[length]);
  if (length == 0 || goes_on) return std::nullopt;
  if (length > (hexadecimal ? kMostHexDigits : kMostDigits)) refuse("a number below 10^18");
  const std::string number(digits.substr(0, length));
  move_on(prefix + length);
  skip_separators();
  return std::stoull(number, nullptr, hexadecimal ? 16 : 10);
}

std::optional<std::string> TextCursor::take_text() {
  if (!rest().starts_with('"')) return std::nullopt;
  move_on(1);
  std::string text(rest().substr(0, rest().find_first_of("\"\n")));
  move_on(text.size());
  expect("\"", "the quotation mark that ends the text, on the same line");
  return text;
}

void TextCursor::expect(std::string_view sign, const std::string& expected) {
  if (!take(sign)) refuse(expected);
}

void TextCursor::expect_word(std::string_view word) {
  if (!take_word(word)) refuse(std::string(word));
}

std::string TextCursor::name(const std::string& expected) {
  std::optional<std::string> name = take_name();
  if (!name) refuse(expected);
  return *std::move(name);
}

std::string TextCursor::quoted_text() {
  std::optional<std::string> text = take_text();
  if (!text) refuse("a text in quotation marks");
  return *std::move(text);
}

}  // namespace citcat::mdl
