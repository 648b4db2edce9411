#include "replay/session/adoptions.h"

#include <algorithm>
#include <utility>

namespace citcat {

Adoptions::Adoptions(std::vector<Adoption> adoptions, Position from)
    : adoptions_(std::move(adoptions)) {
  go_to(from);
}

void Adoptions::go_to(Position from) {
  const auto first = std::find_if(adoptions_.begin(), adoptions_.end(),
                                  [from](const Adoption& a) { return a.position >= from; });
  next_ = static_cast<std::size_t>(first - adoptions_.begin());
}

Position Adoptions::due() const {
  return next_ < adoptions_.size() ? adoptions_[next_].position : Position{~std::uint64_t{0}, 0};
}

const Adoption* Adoptions::after_store(PhysAddr address, std::size_t size, Position now) {
  if (next_ == adoptions_.size()) return nullptr;
  const Adoption& next = adoptions_[next_];
  const bool stored = next.at_store && next.position == now &&
                      next.address.value >= address.value &&
                      next.address.value - address.value < size;
  return stored ? &adoptions_[next_++] : nullptr;
}

const Adoption* Adoptions::after_instruction(Position now) {
  // What was stored differently from foreseen is made up for here, too: no later moment is right.
  if (next_ == adoptions_.size() || adoptions_[next_].position > now) return nullptr;
  if (adoptions_[next_].at_store && adoptions_[next_].position == now) return nullptr;
  return &adoptions_[next_++];
}

}  // namespace citcat
