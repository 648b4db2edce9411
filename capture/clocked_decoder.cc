#include "capture/clocked_decoder.h"

#include <algorithm>

namespace citcat {

ClockedDecoder::ClockedDecoder(const SampleInfo& samples, const PinSet& pins,
                               const std::string& clock_pin)
    : name_(samples.name),
      unit_(samples.unit_bytes),
      every_(pins.assignment.edge == ClockEdge::every),
      active_level_(pins.assignment.edge != ClockEdge::falling),
      first_(samples.unit_bytes),
      last_(samples.unit_bytes) {
  if (!every_) clock_ = PinLevel(pins.pin(clock_pin));
}

void ClockedDecoder::decode(const SampleBlock& block) {
  const std::size_t count = block.bytes.size() / unit_;
  const auto number_of = [&](std::size_t i) {
    return block.numbers.empty() ? block.first + i : block.numbers[i];
  };
  const auto levels = [&](std::size_t i) { return block.bytes.subspan(i * unit_, unit_); };
  if (every_) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t* sample = levels(i).data();
      clock({sample, sample, number_of(i), number_of(i)});
    }
    return;
  }
  // The phase under way may have begun in an earlier block: its ends were copied then.
  const std::uint8_t* first = first_.data();
  for (std::size_t i = 0; i < count; ++i) {
    const bool active = clock_(levels(i).data()) == active_level_;
    if (active == active_) continue;
    active_ = active;
    if (active) {
      begin_ = number_of(i);
      first = levels(i).data();
    } else {
      clock({first, i == 0 ? last_.data() : levels(i - 1).data(), begin_, number_of(i)});
    }
  }
  if (count == 0) return;
  last_number_ = number_of(count - 1);
  if (!active_) return;
  std::copy_n(first, unit_, first_.begin());
  const auto last = levels(count - 1);
  std::copy(last.begin(), last.end(), last_.begin());
}

void ClockedDecoder::finish() {
  if (active_ && !every_) clock({first_.data(), last_.data(), begin_, last_number_ + 1});
  active_ = false;
  end();
}

}  // namespace citcat
