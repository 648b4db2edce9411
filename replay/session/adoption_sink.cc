#include "replay/session/adoption_sink.h"

#include <algorithm>
#include <utility>

namespace citcat {

AdoptionSink::AdoptionSink(std::vector<Adoption> adoptions, Position from)
    : adoptions_(std::move(adoptions)) {
  go_to(from);
}

void AdoptionSink::go_to(Position from) {
  const auto first = std::find_if(adoptions_.begin(), adoptions_.end(),
                                  [from](const Adoption& a) { return a.position >= from; });
  next_ = static_cast<std::size_t>(first - adoptions_.begin());
}

void AdoptionSink::adopt(const Adoption& adoption) {
  machine_->memory().external_write(adoption.address, {&adoption.value, 1});
}

Position AdoptionSink::expected() {
  return next_ < adoptions_.size() ? adoptions_[next_].position : Position{~std::uint64_t{0}, 0};
}

bool AdoptionSink::may_run_block(Position first, std::uint32_t count) {
  return expected().instruction >= first.instruction + count;
}

void AdoptionSink::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind,
                         Position now) {
  // Bytes of one store are adopted in the order in which they were compared, one after the other.
  while (next_ < adoptions_.size()) {
    const Adoption& next = adoptions_[next_];
    const PhysAddr stored = machine_->memory().captured(a);
    if (!next.at_store || next.position != now || next.address < stored ||
        next.address.minus32(stored) >= bytes.size()) {
      return;
    }
    adopt(next);
    ++next_;
  }
}

void AdoptionSink::instruction(const ExecutedInstruction&, Position now) {
  // What was stored otherwise than foreseen is made up for here, too: no later moment is right.
  while (next_ < adoptions_.size() && adoptions_[next_].position <= now) {
    const Adoption& next = adoptions_[next_];
    if (next.at_store && next.position == now) return;
    adopt(next);
    ++next_;
  }
}

}  // namespace citcat
