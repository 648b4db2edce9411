#include "formats/io/segment_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/io/byte_reader.h"

namespace citcat {
namespace {

/// A segment costs much less than a byte an instruction, except where code is all new.
constexpr std::uint64_t kMaxSegmentBytes = std::uint64_t{1} << 28;
/// A length that lies is noticed before more than this was made room for.
constexpr std::uint64_t kSegmentPiece = std::uint64_t{1} << 16;

/// Set before main(), and constant from then on.
SegmentDecoders segment_decoders = nullptr;

}  // namespace

void decode_segments_by(SegmentDecoders make) { segment_decoders = make; }

SegmentStream::SegmentStream(std::string name, bool check_totals, Fail fail)
    : name_(std::move(name)), check_totals_(check_totals), fail_(std::move(fail)) {}

std::size_t SegmentStream::read(const Pull& pull, std::span<std::uint8_t> out) {
  while (at_ == piece_.size()) {
    if (!next_piece(pull)) return 0;
  }
  const std::size_t n = std::min(out.size(), piece_.size() - at_);
  std::memcpy(out.data(), std::span(piece_).subspan(at_).data(), n);
  at_ += n;
  total_bytes_ += n;
  return n;
}

bool SegmentStream::next_piece(const Pull& pull) {
  at_ = 0;
  piece_.clear();
  if (ended_) return false;
  if (!segment_ && !begin_segment(pull)) return false;
  segment_->next(piece_);
  if (piece_.empty()) segment_.reset();
  return true;
}

bool SegmentStream::begin_segment(const Pull& pull) {
  std::uint64_t size = 0;
  if (!read_u64(pull, size)) return false;
  if (size == 0) return end(pull);
  if (size > kMaxSegmentBytes) fail_("expected a segment, found an impossible length");
  std::vector<std::uint8_t> content;
  while (content.size() < size) {
    const std::size_t begin = content.size();
    content.resize(begin + static_cast<std::size_t>(std::min(size - begin, kSegmentPiece)));
    if (!read_exact(pull, std::span(content).subspan(begin))) return false;
  }
  if (segment_decoders == nullptr) fail_("this program has no decoder for stored traces");
  segment_ = segment_decoders(std::move(content), name_);
  return true;
}

bool SegmentStream::end(const Pull& pull) {
  std::uint64_t instructions = 0, bytes = 0;
  if (!read_u64(pull, instructions) || !read_u64(pull, bytes)) return false;
  if (check_totals_ && bytes != total_bytes_) {
    fail_("expected " + std::to_string(bytes) + " KT bytes, found " + std::to_string(total_bytes_));
  }
  std::uint8_t more = 0;
  if (pull(std::span(&more, 1)) != 0) fail_("expected the end, found more segments");
  ended_ = true;
  return false;
}

bool SegmentStream::read_u64(const Pull& pull, std::uint64_t& value) {
  std::array<std::uint8_t, 8> bytes{};
  if (!read_exact(pull, bytes)) return false;
  value = ByteReader(bytes, name_).u64("segment length");
  return true;
}

bool SegmentStream::read_exact(const Pull& pull, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const std::size_t got = pull(out);
    if (got == 0) {
      if (!may_be_cut_) fail_("expected more segments, found the end");
      ended_ = true;
      return false;
    }
    out = out.subspan(got);
  }
  return true;
}

}  // namespace citcat
