#pragma once
// The writing side of ByteReader: bytes appended to memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace citcat {

/// Appends little-endian numbers, varints and bytes to a growing buffer.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(value); }
  void u16(std::uint16_t value) { little_endian(value, 2); }
  void u32(std::uint32_t value) { little_endian(value, 4); }
  void u64(std::uint64_t value) { little_endian(value, 8); }

  /// LEB128, as ByteReader::varint reads it: 1 to 10 bytes.
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      u8(static_cast<std::uint8_t>(value | 0x80));
      value >>= 7;
    }
    u8(static_cast<std::uint8_t>(value));
  }
  /// Zigzag: small magnitudes of either sign become short varints.
  void signed_varint(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    varint(bits << 1 ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void bytes(std::span<const std::uint8_t> data) {
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  /// Length as varint, then the characters.
  void string(std::string_view text) {
    varint(text.size());
    for (const char c : text) u8(static_cast<std::uint8_t>(c));
  }

  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::span<const std::uint8_t> view() const { return bytes_; }
  /// Hands the bytes over and starts again empty.
  std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }
  /// Forgets the bytes but keeps their memory for the next ones.
  void clear() { bytes_.clear(); }
  void reserve(std::size_t n) { bytes_.reserve(n); }

 private:
  void little_endian(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) u8(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  std::vector<std::uint8_t> bytes_;
};

}  // namespace citcat
