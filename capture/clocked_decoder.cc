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
  if (!every_) clock_ = pins.gather({clock_pin});
}

void ClockedDecoder::decode(const SampleBlock& block) {
  const std::size_t count = block.bytes.size() / unit_;
  for (std::size_t i = 0; i < count; ++i)
    sample(block.bytes.subspan(i * unit_, unit_),
           block.numbers.empty() ? block.first + i : block.numbers[i]);
}

void ClockedDecoder::sample(std::span<const std::uint8_t> levels, std::uint64_t number) {
  if (every_) {
    clock({levels.data(), levels.data(), number, number});
    return;
  }
  const bool active = (clock_(levels.data()) != 0) == active_level_;
  if (active) {
    if (!active_) {
      begin_ = number;
      std::copy(levels.begin(), levels.end(), first_.begin());
    }
    std::copy(levels.begin(), levels.end(), last_.begin());
  } else if (active_) {
    clock({first_.data(), last_.data(), begin_, number});
  }
  active_ = active;
  last_number_ = number;
}

void ClockedDecoder::finish() {
  if (active_ && !every_) clock({first_.data(), last_.data(), begin_, last_number_ + 1});
  active_ = false;
  end();
}

}  // namespace citcat
