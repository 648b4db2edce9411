#pragma once
// The bases of segments, kept for the last selectors, because the emulator prints them slowly.

#include <array>
#include <cstdint>

#include "monitor/state/registers.h"

namespace citcat::monitor {

class SegmentBases {
 public:
  /// FS and GS are loaded with other bases under the same selector whenever a thread is switched
  /// to; ES, CS, SS and DS keep theirs.
  std::uint64_t of(unsigned segment, std::uint16_t selector, bool in_real_mode,
                   Registers& registers) {
    if (segment >= known_.size() || in_real_mode) return registers.state().segment[segment].base;
    Known& known = known_[segment];
    if (!known.is_known || known.selector != selector)
      known = {selector, registers.state().segment[segment].base, true};
    return known.base;
  }
  /// The mode has changed, or a task switch has loaded all segments.
  void forget() { known_ = {}; }

 private:
  struct Known {
    std::uint16_t selector = 0;
    std::uint64_t base = 0;
    bool is_known = false;
  };
  std::array<Known, 4> known_{};
};

}  // namespace citcat::monitor
