#pragma once

#include <cstdint>

#include "events/machine/cpu_state.h"

namespace citcat {

/// What a segment register holds after a load of `selector`, whose descriptor's two dwords these
/// are (Intel SDM vol. 3, 3.4.5).
inline Segment segment_of_descriptor(std::uint16_t selector, std::uint32_t low,
                                     std::uint32_t high) {
  constexpr std::uint32_t kGranular = 1u << 23, kIsSegment = 1u << 12;
  Segment s;
  s.selector = selector;
  s.base = low >> 16 | (high & 0xff) << 16 | (high & 0xff000000);
  s.limit = (low & 0xffff) | (high & 0xf0000);
  if ((high & kGranular) != 0) s.limit = s.limit << 12 | 0xfff;
  s.attributes = static_cast<std::uint16_t>(high >> 8 & 0xf0ff);
  // Loading a segment marks it accessed; the type of a system segment is left alone.
  if ((high & kIsSegment) != 0) s.attributes = static_cast<std::uint16_t>(s.attributes | 1u);
  return s;
}

}  // namespace citcat
