#include "capture/bus/clocked_decoder.h"

#include <algorithm>

namespace citcat {

ClockedDecoder::ClockedDecoder(const SampleInfo& samples, const PinSet& pins,
                               const std::string& clock_pin)
    : name_(samples.name),
      unit_(samples.unit_bytes),
      every_(pins.assignment.edge == ClockEdge::every),
      before_(samples.unit_bytes),
      first_(samples.unit_bytes),
      last_(samples.unit_bytes) {
  if (every_) return;
  PinChoice pin = pins.pin(clock_pin);
  pin.inverted ^= pins.assignment.edge == ClockEdge::falling;
  clock_ = PinLevel(pin);
}

void ClockedDecoder::decode(const SampleBlock& block) {
  const std::size_t count = block.bytes.size() / unit_;
  const auto number_of = [&](std::size_t i) {
    return block.numbers.empty() ? block.first + i : block.numbers[i];
  };
  if (every_) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* sample = block.bytes.data() + i * unit_;
      clock({sample, sample, sample, number_of(i), number_of(i)});
    }
    return;
  }
  // The phase under way may have begun in an earlier block: its ends were copied then.
  const std::uint8_t *before = before_.data(), *first = first_.data();
  const std::uint8_t* sample = block.bytes.data();
  // In registers, which a call that may change anything would else keep them from.
  const PinLevel is_active = clock_;
  const std::size_t unit = unit_;
  bool active = active_;
  for (std::size_t i = 0; i < count; ++i, sample += unit) {
    if (is_active(sample) == active) continue;
    active = !active;
    if (active) {
      begin_ = number_of(i);
      before = i == 0 ? last_.data() : sample - unit;
      first = sample;
    } else {
      clock({before, first, i == 0 ? last_.data() : sample - unit, begin_, number_of(i)});
    }
  }
  active_ = active;
  if (count == 0) return;
  last_number_ = number_of(count - 1);
  if (active_) {
    std::copy_n(before, unit_, before_.begin());
    std::copy_n(first, unit_, first_.begin());
  }
  std::copy_n(sample - unit, unit, last_.begin());
}

void ClockedDecoder::finish() {
  if (active_ && !every_)
    clock({before_.data(), first_.data(), last_.data(), begin_, last_number_ + 1});
  active_ = false;
  end();
}

}  // namespace citcat
