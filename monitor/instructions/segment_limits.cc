#include "monitor/instructions/segment_limits.h"

#include <algorithm>

namespace citcat::monitor {
namespace {

// In the second dword of a descriptor.
constexpr std::uint32_t kCodeType = 0x800, kExpandsDown = 0x400, kReadOrWrite = 0x200,
                        kWide = 0x400000, kPresent = 0x8000;
constexpr std::uint32_t kRealLimit = 0xffff;

bool is_null(std::uint16_t selector) { return (selector & 0xfffc) == 0; }

}  // namespace

void SegmentLimits::forget_all() {
  unknown_ = kEvery;
  seen_ = false;
  flat_count_ = 0;
}

/// Learns a segment by its selector alone. False where that does not say enough.
bool SegmentLimits::take_selector(unsigned segment, SegmentMode mode, std::uint16_t selector) {
  Segment& out = segments_[segment];
  switch (mode) {
    case SegmentMode::real:
      // Limits stay as protected mode has left them, and so does the base that a reset gives CS.
      if (!seen_) return false;
      out.base = std::uint32_t{selector} << 4;
      return true;
    case SegmentMode::virtual8086:
      out = {std::uint32_t{selector} << 4, 0, kRealLimit, true, true};
      return true;
    case SegmentMode::protected_mode:
      break;
  }
  if (is_null(selector)) {
    out = {};
    return true;
  }
  const auto end = flat_.begin() + flat_count_;
  if (std::find(flat_.begin(), end, selector) == end) return false;
  out = {0, 0, 0xffffffff, true, true};  // no base is asked for of a segment that has no end
  return true;
}

SegmentLimits::Segment SegmentLimits::described(const LoggedSegment& segment, SegmentMode mode) {
  const auto base = static_cast<std::uint32_t>(segment.base);
  if (mode == SegmentMode::real) return {base, 0, segment.limit, true, true};
  if (is_null(static_cast<std::uint16_t>(segment.selector)) || (segment.flags & kPresent) == 0)
    return {};
  const bool code = (segment.flags & kCodeType) != 0, bit = (segment.flags & kReadOrWrite) != 0;
  Segment out{base, 0, segment.limit, !code || bit, !code && bit};
  if (!code && (segment.flags & kExpandsDown) != 0) {
    out.first = segment.limit + 1;
    out.last = (segment.flags & kWide) != 0 ? 0xffffffff : 0xffff;
    if (segment.limit >= out.last) out.readable = out.writable = false;
  }
  return out;
}

void SegmentLimits::take_state(SegmentMode mode, const LoggedState& state) {
  for (unsigned n = 0; n < kSegments; ++n) {
    segments_[n] = mode == SegmentMode::virtual8086
                       ? Segment{state.segment[n].selector << 4, 0, kRealLimit, true, true}
                       : described(state.segment[n], mode);
    const auto selector = static_cast<std::uint16_t>(state.segment[n].selector);
    const auto end = flat_.begin() + flat_count_;
    if (mode == SegmentMode::protected_mode && segments_[n].is_flat() &&
        flat_count_ < flat_.size() && std::find(flat_.begin(), end, selector) == end)
      flat_[flat_count_++] = selector;
  }
  seen_ = true;
}

void SegmentLimits::find_limited() {
  limited_ = 0;
  for (unsigned n = 0; n < kSegments; ++n)
    if (!segments_[n].is_flat()) limited_ |= static_cast<std::uint8_t>(1u << n);
}

bool SegmentLimits::allows(unsigned segment, std::uint32_t linear, std::uint32_t size,
                           bool store) const {
  if ((unknown_ >> segment & 1) != 0) return true;
  const Segment& s = segments_[segment];
  const std::uint32_t offset = linear - s.base;
  return (store ? s.writable : s.readable) && offset >= s.first && offset <= s.last &&
         size - 1 <= s.last - offset;
}

}  // namespace citcat::monitor
