#include "formats/text/utf16.h"

namespace citcat {
namespace {

constexpr std::uint32_t kUtf16Mark = 0xfeff, kNoCharacter = 0xfffd;

void append_utf8(std::uint32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const unsigned following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kFirst[following] | c >> (6 * following));
  for (unsigned i = following; i-- != 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3f));
}

}  // namespace

std::optional<Utf16Decoder> Utf16Decoder::for_text(std::span<const std::uint8_t> head) {
  if (head.size() < 2) return std::nullopt;
  if (head[0] == 0xff && head[1] == 0xfe) return Utf16Decoder(false);
  if (head[0] == 0xfe && head[1] == 0xff) return Utf16Decoder(true);
  return std::nullopt;
}

std::string Utf16Decoder::decode(std::span<const std::uint8_t> bytes) {
  std::string out;
  for (const std::uint8_t byte : bytes) {
    if (!half_) {
      half_ = byte;
      continue;
    }
    const std::uint32_t first = *half_;
    half_.reset();
    take_unit(big_endian_ ? first << 8 | byte : std::uint32_t{byte} << 8 | first, out);
  }
  return out;
}

void Utf16Decoder::take_unit(std::uint32_t unit, std::string& out) {
  const bool is_high = unit >> 10 == 0x36, is_low = unit >> 10 == 0x37;
  if (high_ != 0 && is_low) {
    append_utf8(0x10000 + ((high_ & 0x3ff) << 10 | (unit & 0x3ff)), out);
  } else {
    if (high_ != 0) append_utf8(kNoCharacter, out);
    if (is_low) append_utf8(kNoCharacter, out);
    if (!is_high && !is_low && unit != kUtf16Mark) append_utf8(unit, out);
  }
  high_ = is_high ? unit : 0;
}

}  // namespace citcat
