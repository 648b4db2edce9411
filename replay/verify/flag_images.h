#pragma once
// Words in memory that a plain comparison allows to differ from the bus until a line shows them:
// images of EFLAGS with flags that no manual defines, and results that differ from one model of a
// processor to the next.

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "replay/machine/memory.h"

namespace citcat {

/// Stores that are not reported may overwrite an image, so an image is compared with memory before
/// it is used. Addresses are multiples of four.
class FlagImages {
 public:
  struct Image {
    std::uint32_t value = 0, undefined = 0;
  };
  bool empty() const { return images_.empty(); }
  /// Four bytes were stored, an image where some of its bits are `undefined`; returns the image
  /// that they overwrite.
  std::optional<Image> stored(PhysAddr a, Image image);
  /// These bytes have been copied, images among them.
  void copied(PhysAddr from, PhysAddr to, std::uint32_t size);
  /// Forgets images that memory does not hold any more.
  void forget_lost(const Memory& memory);
  /// The bus shows these bytes.
  void shown(PhysAddr a, std::uint32_t size) {
    for (std::uint32_t b = 0; !images_.empty() && b < size; b += 4)
      images_.erase(a.plus32(b).value);
  }
  /// The byte belongs to an image that memory still holds as it was stored, and differs from the
  /// captured only in flags that no manual defines.
  bool explain(PhysAddr a, std::uint8_t captured, const Memory& memory) const;

 private:
  std::unordered_map<std::uint64_t, Image> images_;  ///< by address
};

}  // namespace citcat
