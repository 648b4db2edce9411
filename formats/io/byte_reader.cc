#include "formats/io/byte_reader.h"

#include "formats/io/error.h"

namespace citcat {

std::uint64_t ByteReader::varint(std::string_view field) {
  const std::uint64_t start = offset();
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8(field);
    // The tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) break;
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  fail_at(start, std::string(field) + ": expected a number of at most 64 bits, found a longer one");
}

void ByteReader::skip_varints(std::uint64_t n, std::string_view field) {
  const auto left = bytes_.subspan(position_);
  const auto* const end = left.data() + left.size();
  const auto* at = left.data();
  while (n != 0 && at != end) n -= *at++ < 0x80 ? 1 : 0;
  position_ += static_cast<std::size_t>(at - left.data());
  if (n != 0) fail_short(n, field);
}

std::int64_t ByteReader::signed_varint(std::string_view field) {
  const std::uint64_t folded = varint(field);
  return static_cast<std::int64_t>(folded >> 1 ^ (~(folded & 1) + 1));
}

std::size_t ByteReader::count(std::string_view field, std::uint64_t max) {
  const std::uint64_t start = offset();
  const std::uint64_t value = varint(field);
  if (value > max) {
    fail_at(start, std::string(field) + ": expected at most " + std::to_string(max) + ", found " +
                       std::to_string(value));
  }
  return static_cast<std::size_t>(value);
}

std::string ByteReader::string(std::string_view field, std::uint64_t max) {
  const auto text = bytes(count(field, max), field);
  return {text.begin(), text.end()};
}

void ByteReader::expect_end(std::string_view what) const {
  if (at_end()) return;
  fail("expected the end of " + std::string(what) + ", found " + std::to_string(remaining()) +
       " more bytes");
}

void ByteReader::fail_at(std::uint64_t offset, const std::string& message) const {
  throw FormatError(name_, offset, message);
}

void ByteReader::fail_short(std::uint64_t n, std::string_view field) const {
  fail(std::string(field) + ": expected " + std::to_string(n) + " bytes, found " +
       std::to_string(remaining()));
}

}  // namespace citcat
