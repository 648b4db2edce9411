#pragma once
// Which bytes of memory were touched, page frame by page frame.

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>

#include "events/machine/address.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"

namespace citcat::tools {

/// A bit for each byte of the frames in which one is set.
class FrameMarks {
 public:
  static constexpr std::size_t kWords = kPageSize / 64;
  using Frame = std::array<std::uint64_t, kWords>;

  /// Bytes within one frame.
  void mark(PhysAddr at, std::uint32_t size) {
    const FrameNumber page = at.page();
    if (page != last_page_ || last_ == nullptr) [[unlikely]] {
      auto& frame = frames_[page];
      if (frame == nullptr) frame = std::make_unique<Frame>();
      last_page_ = page;
      last_ = frame.get();
    }
    const std::uint32_t offset = at.offset_in_page();
    const std::uint32_t bit = offset % 64;
    if (bit + size <= 64 && size < 64) [[likely]] {
      (*last_)[offset / 64] |= ((std::uint64_t{1} << size) - 1) << bit;
      return;
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      (*last_)[(offset + i) / 64] |= std::uint64_t{1} << (offset + i) % 64;
    }
  }
  void add(const FrameMarks& other) {
    for (const auto& [page, theirs] : other.frames_) {
      auto& mine = frames_[page];
      if (mine == nullptr) mine = std::make_unique<Frame>();
      for (std::size_t w = 0; w < kWords; ++w) (*mine)[w] |= (*theirs)[w];
    }
    last_ = nullptr;
  }
  /// How many blocks of `bytes` bytes, a power of two up to a page, have a byte that was touched.
  std::uint64_t count(std::uint32_t bytes) const {
    std::uint64_t n = 0;
    for (const auto& [page, frame] : frames_) {
      for (std::uint32_t at = 0; at < kPageSize; at += bytes)
        n += touches(*frame, at, bytes) ? 1 : 0;
    }
    return n;
  }
  const std::map<FrameNumber, std::unique_ptr<Frame>>& frames() const { return frames_; }
  void save(ByteWriter& out) const {
    out.varint(frames_.size());
    for (const auto& [page, frame] : frames_) {
      out.varint(page);
      for (const std::uint64_t word : *frame) out.u64(word);
    }
  }
  void load(ByteReader& in) {
    const std::size_t count = in.count("number of frames", in.remaining());
    for (std::size_t i = 0; i < count; ++i) {
      auto& frame = frames_[in.varint("frame")];
      frame = std::make_unique<Frame>();
      for (std::uint64_t& word : *frame) word = in.u64("bytes of a frame");
    }
  }

 private:
  static bool touches(const Frame& frame, std::uint32_t at, std::uint32_t bytes) {
    if (bytes >= 64) {
      for (std::uint32_t w = at / 64; w < (at + bytes) / 64; ++w) {
        if (frame[w] != 0) return true;
      }
      return false;
    }
    return (frame[at / 64] >> at % 64 & ((std::uint64_t{1} << bytes) - 1)) != 0;
  }

  std::map<FrameNumber, std::unique_ptr<Frame>> frames_;  ///< by number
  FrameNumber last_page_ = 0;
  Frame* last_ = nullptr;
};

}  // namespace citcat::tools
