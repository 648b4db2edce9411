#include "formats/text/printable_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace citcat {

namespace {

struct CharacterRange {
  std::uint32_t first, last;
};

/// Unicode Character Database 15.0, UnicodeData.txt: general categories Cc, Cf, Zl and Zp.
constexpr std::array<CharacterRange, 22> kUnseen{{
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x0600, 0x0605},
    {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},
    {0x08e2, 0x08e2},   {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x2064},   {0x2066, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0001, 0xe007f},
}};

constexpr std::uint32_t kAsciiEnd = 0x80;

/// The character at the front of a text, or a byte that begins none.
struct FrontCharacter {
  std::uint32_t code = 0;
  unsigned bytes = 1;
  bool valid = false;
};

/// The Unicode Standard 15.0, table 3-7, "Well-Formed UTF-8 Byte Sequences". `text` is not empty.
FrontCharacter front_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < kAsciiEnd) return {lead, 1, true};
  const unsigned more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if (lead < 0xc2 || lead > 0xf4 || text.size() <= more) return {lead, 1, false};
  constexpr std::uint8_t kLeadBits[] = {0, 0x1f, 0x0f, 0x07};
  std::uint32_t code = lead & kLeadBits[more];
  for (unsigned i = 1; i <= more; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1, false};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[more] || surrogate || code > 0x10ffff) return {lead, 1, false};
  return {code, more + 1, true};
}

bool needs_a_look(char c) {
  const auto byte = static_cast<std::uint8_t>(c);
  return byte < 0x20 || byte >= 0x7f;
}

/// Calls visit(bytes, character) for one after the other.
template <class F>
void for_each_character(std::string_view text, F&& visit) {
  while (!text.empty()) {
    const FrontCharacter front = front_character(text);
    visit(text.substr(0, front.bytes), front);
    text.remove_prefix(front.bytes);
  }
}

}  // namespace

bool is_unseen(std::uint32_t character) {
  const auto range = std::find_if(kUnseen.begin(), kUnseen.end(),
                                  [&](const CharacterRange& r) { return character <= r.last; });
  return range != kUnseen.end() && character >= range->first;
}

std::string printable_text(std::string_view text, std::string_view kept) {
  if (std::none_of(text.begin(), text.end(), needs_a_look)) return std::string(text);
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view bytes, const FrontCharacter& character) {
    const bool is_ascii = character.code < kAsciiEnd;
    const bool is_kept = is_ascii && kept.find(bytes[0]) != std::string_view::npos;
    if (character.valid && (is_kept || !is_unseen(character.code))) {
      result += bytes;
    } else if (is_ascii || !character.valid) {
      result += fmt::format("\\x{:02x}", character.code);
    } else {
      result += fmt::format("\\u{{{:x}}}", character.code);
    }
  });
  return result;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@\t\r").find(text[0]) == std::string_view::npos) {
    return false;
  }
  // A sign, then nothing but a number, has nothing to run.
  return text.find_first_not_of("0123456789.", 1) != std::string_view::npos || text[0] == '=' ||
         text[0] == '@';
}

std::string printable_json(std::string json) {
  const auto beyond_ascii = [](char c) { return static_cast<std::uint8_t>(c) >= 0x7f; };
  if (std::none_of(json.begin(), json.end(), beyond_ascii)) return json;
  std::string result;
  result.reserve(json.size());
  for_each_character(json, [&](std::string_view bytes, const FrontCharacter& character) {
    if (!beyond_ascii(bytes[0]) || !character.valid || !is_unseen(character.code)) {
      result += bytes;
    } else if (character.code < 0x10000) {
      result += fmt::format("\\u{:04x}", character.code);
    } else {
      const std::uint32_t beyond = character.code - 0x10000;
      result +=
          fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (beyond >> 10), 0xdc00 + (beyond & 0x3ff));
    }
  });
  return result;
}

}  // namespace citcat
