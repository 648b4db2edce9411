#include "formats/io/compression.h"

#include <algorithm>
#include <array>

namespace citcat {
namespace {

bool starts_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

/// RFC 1952, 2.3.1 (and method 8, the only one defined).
constexpr std::array<std::uint8_t, 3> kGzipMagic{0x1f, 0x8b, 8};
/// The .xz File Format, 2.1.1.1.
constexpr std::array<std::uint8_t, 6> kXzMagic{0xfd, '7', 'z', 'X', 'Z', 0};
/// RFC 8878, 3.1.1; a file may also begin with one of 16 kinds of skippable frame (3.1.2).
constexpr std::array<std::uint8_t, 4> kZstdMagic{0x28, 0xb5, 0x2f, 0xfd};
constexpr std::array<std::uint8_t, 3> kZstdSkippableTail{0x2a, 0x4d, 0x18};

/// bzip2 (bzip2 1.0.8, decompress.c): "BZh", the block size in 100 kB, and a block of data, which
/// begins with the digits of pi, or the end of the stream, with those of its square root.
constexpr std::array<std::uint8_t, 3> kBzip2Magic{'B', 'Z', 'h'};
constexpr std::array<std::uint8_t, 6> kBzip2Block{0x31, 0x41, 0x59, 0x26, 0x53, 0x59};
constexpr std::array<std::uint8_t, 6> kBzip2End{0x17, 0x72, 0x45, 0x38, 0x50, 0x90};

/// A skippable frame (RFC 8878, 3.1.2) of 16 bytes that begins so.
constexpr std::array<std::uint8_t, kStoredKtMagicBytes> kStoredKtMagic{
    0x50, 0x2a, 0x4d, 0x18, 0x10, 0, 0, 0, 'C', 'I', 'T', 'C', 'A', 'T', 'K', 'T'};

/// All ten bytes, because a text may begin with the letters.
bool is_bzip2(std::span<const std::uint8_t> bytes) {
  if (!starts_with(bytes, kBzip2Magic) || bytes.size() < 4) return false;
  if (bytes[3] < '1' || bytes[3] > '9') return false;
  const auto head = bytes.subspan(4, std::min(bytes.size() - 4, kBzip2Block.size()));
  return std::equal(head.begin(), head.end(), kBzip2Block.begin()) ||
         std::equal(head.begin(), head.end(), kBzip2End.begin());
}

}  // namespace

std::string_view compression_name(Compression compression) {
  switch (compression) {
    case Compression::none:
      return "none";
    case Compression::gzip:
      return "gzip";
    case Compression::bzip2:
      return "bzip2";
    case Compression::xz:
      return "xz";
    case Compression::zstd:
      return "zstd";
    case Compression::stored_kt:
      return "stored KT";
  }
  return "?";
}

Compression detect_compression(std::span<const std::uint8_t> bytes) {
  if (starts_with(bytes, kGzipMagic)) return Compression::gzip;
  if (is_bzip2(bytes)) return Compression::bzip2;
  if (starts_with(bytes, kXzMagic)) return Compression::xz;
  if (starts_with(bytes, kStoredKtMagic)) return Compression::stored_kt;
  if (starts_with(bytes, kZstdMagic)) return Compression::zstd;
  if (bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 &&
      starts_with(bytes.subspan(1), kZstdSkippableTail)) {
    return Compression::zstd;
  }
  return Compression::none;
}

}  // namespace citcat
