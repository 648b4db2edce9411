#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "events/machine/address.h"

namespace citcat {

/// Iterations of a REP string instruction that are about to be made one after another. From one
/// iteration to the next, each operand's address goes up by an element, within its frame.
struct StringIterations {
  PhysAddr code;  ///< of the instruction
  std::uint32_t code_bytes = 0;
  std::uint32_t count = 0;
  std::uint32_t size = 0;                ///< bytes of an element
  unsigned reads = 0;                    ///< operands that are read
  std::array<PhysAddr, 2> from;          ///< theirs of the first iteration, in the order of reading
  PhysAddr to;                           ///< where the first one stores,
  std::span<const std::uint8_t> stored;  ///< and what they all do; empty where they do not

  // Whether iterations from number `first` up to, not including, `end` read within the range; and
  // store.
  bool read_within(std::uint32_t first, std::uint32_t end, PhysAddr a, std::uint32_t bytes) const {
    return std::any_of(from.begin(), from.begin() + reads,
                       [&](PhysAddr begin) { return reach(begin, first, end, a, bytes); });
  }
  bool store_within(std::uint32_t first, std::uint32_t end, PhysAddr a, std::uint32_t bytes) const {
    return !stored.empty() && reach(to, first, end, a, bytes);
  }

 private:
  bool reach(PhysAddr begin, std::uint32_t first, std::uint32_t end, PhysAddr a,
             std::uint32_t bytes) const {
    return first < end && overlap(begin.plus32(first * size), (end - first) * size, a, bytes);
  }
};

}  // namespace citcat
