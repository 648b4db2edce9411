#pragma once

#include <cstddef>
#include <cstdint>

#include "events/address.h"
#include "formats/io/zeroed_array.h"

namespace citcat {

/// Lines of linear memory all of whose bytes are known to be defined, as many as there is room for,
/// and where they lie; each in one epoch of the TLB (Mmu::epoch()).
class DefinedLines {
 public:
  static constexpr std::uint32_t kBytes = 32;

  static constexpr std::uint32_t begin_of(std::uint32_t address) { return address & ~(kBytes - 1); }
  static constexpr std::uint32_t offset_in(std::uint32_t address) { return address & (kBytes - 1); }

  /// What lines of this epoch are known by; never 0.
  static constexpr std::uint64_t mark_of(std::uint32_t epoch) {
    return std::uint64_t{epoch} << 32 | 1;
  }
  /// These bytes lie in one line, which was added in the epoch of this mark.
  bool hold(std::uint32_t linear, std::uint32_t size, std::uint64_t mark) const {
    return offset_in(linear) + size <= kBytes && lines_[slot(linear)] == (mark | begin_of(linear));
  }
  /// Where `linear` lies, which hold() has found to.
  PhysAddr physical(std::uint32_t linear) const {
    return frames_[slot(linear)].plus32(linear % kPageSize);
  }
  /// The line of `linear`, which lies at `at`.
  void add(std::uint32_t linear, PhysAddr at, std::uint64_t mark) {
    lines_[slot(linear)] = mark | begin_of(linear);
    frames_[slot(linear)] = at.page_begin();
  }

 private:
  static constexpr std::size_t kLines = std::size_t{1} << 12;
  static std::size_t slot(std::uint32_t linear) { return linear / kBytes & (kLines - 1); }

  ZeroedArray<std::uint64_t> lines_{kLines};
  ZeroedArray<PhysAddr> frames_{kLines};
};

}  // namespace citcat
