#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace citcat {

/// Everything besides where a block lies that decides which template it has and whether that may
/// run: where this has not changed since a template was found, it need not be looked for again.
struct BlockSurroundings {
  std::uint64_t mode = 0;            ///< as in BlockKey
  std::uint64_t templates_gone = 0;  ///< BlockTable::gone()
  std::uint32_t code_base = 0;
  std::uint32_t segments = 0;  ///< what blocks may use of each: Machine::segments_allow()
  bool operator==(const BlockSurroundings&) const = default;
};

/// Numbers surroundings, such that a number never means two. A few that were met last keep theirs:
/// a processor goes to and fro between user and supervisor.
class SurroundingsNumbers {
 public:
  static constexpr std::uint32_t kUnknown = 0;

  /// No further number is left.
  bool exhausted() const { return last_ == 0xffffffff; }
  /// Not kUnknown. Must not be exhausted().
  std::uint32_t number_of(const BlockSurroundings& wanted) {
    for (const Known& k : known_) {
      if (k.number != kUnknown && k.surroundings == wanted) return k.number;
    }
    Known& oldest =
        *std::min_element(known_.begin(), known_.end(),
                          [](const Known& a, const Known& b) { return a.number < b.number; });
    oldest = {wanted, ++last_};
    return oldest.number;
  }

 private:
  struct Known {
    BlockSurroundings surroundings;
    std::uint32_t number = kUnknown;
  };
  std::array<Known, 8> known_{};
  std::uint32_t last_ = kUnknown;
};

}  // namespace citcat
