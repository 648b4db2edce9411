#pragma once
// Memory beyond 4 GiB in captures and archives of earlier versions. Their addresses have 32 bits:
// they show each used page frame beyond 4 GiB under the address of a frame below 4 GiB that the
// machine does not have, its stand-in, and say which frame that is. The readers of captures and
// archives translate such addresses; nothing else knows about them.

#include <cstdint>
#include <string>
#include <unordered_map>

#include "events/machine/address.h"

namespace citcat {

class StandIns {
 public:
  /// From now on the page at `shown` stands for the one at `page`; a repetition changes nothing.
  /// Returns an error for people, or "".
  std::string add(PhysAddr shown, PhysAddr page);

  bool empty() const { return frames_.empty(); }
  /// The address of the byte that is shown there.
  PhysAddr meant(PhysAddr shown) const {
    const auto found = frames_.find(shown.page());
    if (found == frames_.end()) return shown;
    return PhysAddr{found->second * kPageSize + shown.offset_in_page()};
  }

 private:
  std::unordered_map<FrameNumber, FrameNumber> frames_;     ///< by stand-in
  std::unordered_map<FrameNumber, FrameNumber> stand_ins_;  ///< the reverse
};

}  // namespace citcat
