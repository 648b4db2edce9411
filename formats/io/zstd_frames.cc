#include "formats/io/zstd_frames.h"

#include <algorithm>

namespace citcat {
namespace {

/// RFC 8878, 3.1.1 and 3.1.2; the last four bits of a skippable frame's are free.
constexpr std::uint64_t kFrameMagic = 0xfd2fb528;
constexpr std::uint64_t kFirstSkippable = 0x184d2a50;

/// 3.1.1.1.1: bytes of the fields by the flags in the descriptor.
constexpr std::array<std::size_t, 4> kDictionaryBytes{0, 1, 2, 4};
constexpr std::array<std::size_t, 4> kContentSizeBytes{0, 2, 4, 8};

/// 3.1.1.2.2: a block of one byte, to be repeated.
constexpr std::uint64_t kRleBlock = 1;

}  // namespace

bool ZstdFrames::at_frame_boundary() const {
  return part_ == Part::unknown || (part_ == Part::magic && have_ == 0 && skip_ == 0);
}

void ZstdFrames::pass(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty() && part_ != Part::unknown) {
    if (skip_ != 0) {
      const std::uint64_t n = std::min<std::uint64_t>(skip_, bytes.size());
      skip_ -= n;
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      continue;
    }
    const std::size_t n = std::min(wanted_ - have_, bytes.size());
    std::copy_n(bytes.begin(), n, std::span(field_).subspan(have_).begin());
    have_ += n;
    bytes = bytes.subspan(n);
    if (have_ == wanted_) take_field();
  }
}

void ZstdFrames::expect(Part part, std::size_t bytes) {
  part_ = part;
  have_ = 0;
  wanted_ = bytes;
}

void ZstdFrames::take_field() {
  switch (part_) {
    case Part::magic:
      return begin_frame(field_value());
    case Part::skippable_size:
      skip_ = field_value();
      return expect(Part::magic, 4);
    case Part::descriptor:
      return read_descriptor(field_value());
    case Part::header:
      return expect(Part::block_header, 3);
    case Part::block_header:
      return begin_block(field_value());
    case Part::checksum:
      return expect(Part::magic, 4);
    case Part::unknown:
      return;
  }
}

void ZstdFrames::begin_frame(std::uint64_t magic) {
  if (magic == kFrameMagic) return expect(Part::descriptor, 1);
  if ((magic & ~std::uint64_t{0xf}) == kFirstSkippable) return expect(Part::skippable_size, 4);
  expect(Part::unknown, 0);
}

void ZstdFrames::read_descriptor(std::uint64_t descriptor) {
  const bool single_segment = (descriptor & 0x20) != 0;
  has_checksum_ = (descriptor & 4) != 0;
  std::size_t content_size = kContentSizeBytes[descriptor >> 6];
  if (single_segment && content_size == 0) content_size = 1;
  const std::size_t window = single_segment ? 0 : 1;
  expect(Part::header, window + kDictionaryBytes[descriptor & 3] + content_size);
}

void ZstdFrames::begin_block(std::uint64_t header) {
  const bool last = (header & 1) != 0;
  const std::uint64_t type = header >> 1 & 3, size = header >> 3;
  skip_ = type == kRleBlock ? 1 : size;
  if (!last) return expect(Part::block_header, 3);
  if (has_checksum_) return expect(Part::checksum, 4);
  expect(Part::magic, 4);
}

/// Little-endian, of at most eight bytes.
std::uint64_t ZstdFrames::field_value() const {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(have_, 8); i-- != 0;) value = value << 8 | field_[i];
  return value;
}

}  // namespace citcat
