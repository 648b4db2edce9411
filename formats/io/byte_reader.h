#pragma once
// Bounds-checked reading of bytes in memory. Every parser of this project goes through it, so that
// no length taken from a file can reach beyond the bytes that are there.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace citcat {

/// A cursor over bytes that somebody else owns and keeps alive. Multi-byte numbers are
/// little-endian unless the name says otherwise. Every read names its field, and a read beyond the
/// end throws FormatError with the name, the offset where the field begins and what is missing.
class ByteReader {
 public:
  /// `name` is the file for messages; `base` the offset of bytes[0] in it.
  ByteReader(std::span<const std::uint8_t> bytes, std::string name, std::uint64_t base = 0)
      : bytes_(bytes), name_(std::move(name)), base_(base) {}

  std::uint8_t u8(std::string_view field) { return take(1, field)[0]; }
  std::uint16_t u16(std::string_view field) {
    return static_cast<std::uint16_t>(little_endian(take(2, field)));
  }
  std::uint32_t u32(std::string_view field) {
    return static_cast<std::uint32_t>(little_endian(take(4, field)));
  }
  std::uint64_t u64(std::string_view field) { return little_endian(take(8, field)); }

  /// LEB128: seven bits a byte, least significant first, top bit set on all but the last. At most
  /// ten bytes; a number beyond 64 bits throws.
  std::uint64_t varint(std::string_view field);
  /// A varint holding a signed number in zigzag order: 0, -1, 1, -2, 2 ...
  std::int64_t signed_varint(std::string_view field);
  /// Skips `n` varints without looking at their values.
  void skip_varints(std::uint64_t n, std::string_view field);
  /// A varint that counts something to be read next: more than `max` throws.
  std::size_t count(std::string_view field, std::uint64_t max);
  /// A length as varint, at most `max`, and that many bytes as they are.
  std::string string(std::string_view field, std::uint64_t max);

  /// The next `n` bytes, valid as long as the bytes given to the constructor.
  std::span<const std::uint8_t> bytes(std::uint64_t n, std::string_view field) {
    return take(n, field);
  }
  void skip(std::uint64_t n, std::string_view field) { take(n, field); }

  std::size_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return position_ == bytes_.size(); }
  /// Offset of the next byte in the named file.
  std::uint64_t offset() const { return base_ + position_; }
  const std::string& name() const { return name_; }

  /// Throws when bytes are left; `what` names the structure that should have ended.
  void expect_end(std::string_view what) const;
  /// Throws FormatError at the current offset.
  [[noreturn]] void fail(const std::string& message) const { fail_at(offset(), message); }
  [[noreturn]] void fail_at(std::uint64_t offset, const std::string& message) const;

 private:
  std::span<const std::uint8_t> take(std::uint64_t n, std::string_view field) {
    if (n > remaining()) fail_short(n, field);
    const auto result = bytes_.subspan(position_, static_cast<std::size_t>(n));
    position_ += static_cast<std::size_t>(n);
    return result;
  }
  static std::uint64_t little_endian(std::span<const std::uint8_t> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
    return value;
  }
  [[noreturn]] void fail_short(std::uint64_t n, std::string_view field) const;

  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  std::string name_;
  std::uint64_t base_ = 0;
};

}  // namespace citcat
