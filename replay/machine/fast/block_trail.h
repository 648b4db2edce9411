#pragma once
// The instructions that ran without being reported block by block: a range, and the last of them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/machine/audience.h"
#include "replay/machine/block_code.h"

namespace citcat::fast {

class BlockTrail {
 public:
  /// Instructions [from, to) have passed, right after those before, or after tell().
  void pass(std::uint64_t from, std::uint64_t to);
  /// The first `count` instructions of a block, which are going to pass, with their addresses.
  /// `once`: it is not kept.
  void keep(const BlockCode& code, bool once, std::uint32_t count, std::uint64_t first,
            const std::uint8_t* area, std::size_t area_bytes);
  /// Reports to the observers what has passed since the last report, and the trail of its last
  /// instructions. To be called before the code is gone, and before the observers want something
  /// else.
  void tell(Audience& audience) {
    if (from_ != kNothing) tell_all(audience);
  }

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};
  struct Kept {
    const BlockCode* code = nullptr;
    bool once = false;
    BlockCode copy;  ///< then
    std::uint32_t count = 0;
    std::uint64_t first = 0;
    std::vector<std::uint8_t> area;
  };
  void tell_all(Audience& audience);

  std::uint64_t from_ = kNothing, to_ = 0;
  /// A ring of the last ones: each has an instruction at least.
  std::vector<Kept> kept_ = std::vector<Kept>(Interest::kMostTrail);
  std::size_t next_ = 0;  ///< how many were put there
};

}  // namespace citcat::fast
