#pragma once
// Names for the bytes that instructions read and write, to make a flow of. Private to the room.

#include <cstdint>
#include <vector>

#include "x86/flow/value_flow.h"

namespace citcat::flow {

inline constexpr ValueSpan kLoads{ValueSpan::Of::loads, 0, ValueSpan::kAll};
inline constexpr ValueSpan kStores{ValueSpan::Of::stores, 0, ValueSpan::kAll};
inline constexpr ValueSpan kInput{ValueSpan::Of::input, 0, 1};
inline constexpr ValueSpan kNothing{ValueSpan::Of::places, 0, 0};
inline constexpr std::uint32_t kCalculated = 0x8d5;  ///< CF PF AF ZF SF OF

inline ValueSpan at_place(PlaceRange range) {
  return {ValueSpan::Of::places, range.first, range.count};
}
inline ValueSpan at_gpr(unsigned number, unsigned first, unsigned count) {
  return at_place(place::gpr(number, first, count));
}
inline ValueSpan loads(unsigned first, unsigned count) {
  return {ValueSpan::Of::loads, static_cast<std::uint16_t>(first),
          static_cast<std::uint16_t>(count)};
}
inline ValueSpan stores(unsigned first, unsigned count) {
  return {ValueSpan::Of::stores, static_cast<std::uint16_t>(first),
          static_cast<std::uint16_t>(count)};
}
/// Byte `i` of a span; nothing where it has fewer.
inline ValueSpan byte_of(const ValueSpan& span, unsigned i) {
  return {span.of, static_cast<std::uint16_t>(span.first + i), 1};
}

inline void add_flags(std::uint32_t mask, std::vector<ValueSpan>& to) {
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((mask >> bit & 1) != 0) to.push_back(at_place(place::flag(bit)));
  }
}

}  // namespace citcat::flow
