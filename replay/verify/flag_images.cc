#include "replay/verify/flag_images.h"

#include <cstring>

namespace citcat {

std::optional<FlagImages::Image> FlagImages::stored(PhysAddr a, Image image) {
  std::optional<Image> overwritten;
  const auto old = images_.find(a.value);
  if (old != images_.end()) {
    overwritten = old->second;
    images_.erase(old);
  }
  if (image.undefined != 0) images_[a.value] = image;
  return overwritten;
}

void FlagImages::copied(PhysAddr from, PhysAddr to, std::uint32_t size) {
  if (images_.empty()) return;
  for (std::uint32_t i = (0 - from.low32()) & 3; i + 4 <= size; i += 4) {
    const auto image = images_.find(from.plus32(i).value);
    if (image != images_.end()) images_[to.plus32(i).value] = Image{image->second};
  }
}

void FlagImages::forget_lost(const Memory& memory) {
  std::erase_if(images_, [&](const auto& entry) {
    const PhysAddr at{entry.first};
    return !memory.is_mapped(at.page()) ||
           std::memcmp(memory.host(at), &entry.second.value, 4) != 0;
  });
}

bool FlagImages::explain(PhysAddr a, std::uint8_t captured, const Memory& memory) const {
  const PhysAddr at = a.begin_of(4);
  const auto image = images_.find(at.value);
  if (image == images_.end()) return false;
  if (!memory.is_mapped(at.page()) || !memory.is_defined(at, 4)) return false;
  const Image& stored = image->second;
  const unsigned shift = 8 * a.offset_in(4);
  const auto ours = static_cast<std::uint8_t>(stored.value >> shift);
  return std::memcmp(memory.host(at), &stored.value, 4) == 0 &&
         ((ours ^ captured) & ~(stored.undefined >> shift) & 0xff) == 0;
}

}  // namespace citcat
