#include "view/exported/column.h"

#include <algorithm>

namespace citcat::view {

namespace {

/// Bytes of the difference as ByteWriter::signed_varint() has it; none where there is none.
std::uint64_t cost_of(std::uint64_t value, std::uint64_t foreseen) {
  const auto difference = static_cast<std::int64_t>(value - foreseen);
  if (difference == 0) return 0;
  std::uint64_t bits =
      static_cast<std::uint64_t>(difference) << 1 ^ (difference < 0 ? ~std::uint64_t{0} : 0);
  std::uint64_t bytes = 1;
  while (bits >= 0x80) {
    bits >>= 7;
    ++bytes;
  }
  return bytes;
}

}  // namespace

std::uint64_t Column::foreseen(std::uint8_t by, std::span<const std::uint64_t> inputs) const {
  if (by == static_cast<std::uint8_t>(Foresight::last)) return last_;
  if (by == static_cast<std::uint8_t>(Foresight::stride)) return last_ + (last_ - before_);
  const std::size_t i = by - kFirstInput;
  if (i >= inputs.size()) return last_;
  return inputs[i] + (i < last_inputs_.size() ? last_ - last_inputs_[i] : 0);
}

void Column::remember(std::uint64_t value, std::span<const std::uint64_t> inputs) {
  before_ = last_;
  last_ = value;
  last_inputs_.assign(inputs.begin(), inputs.end());
}

void Column::weigh(std::uint64_t value, std::span<const std::uint64_t> inputs) {
  cost_.resize(std::max<std::size_t>(cost_.size(), kFirstInput + inputs.size()));
  for (std::size_t by = 0; by < cost_.size(); ++by) {
    cost_[by] += cost_of(value, foreseen(static_cast<std::uint8_t>(by), inputs));
  }
  remember(value, inputs);
}

void Column::choose() {
  const auto best = std::min_element(cost_.begin(), cost_.end());
  foresight_ = best == cost_.end() ? 0 : static_cast<std::uint8_t>(best - cost_.begin());
  cost_ = {};
  last_ = before_ = 0;
  last_inputs_.clear();
}

void Column::write(std::uint64_t value, std::span<const std::uint64_t> inputs) {
  out_.signed_varint(static_cast<std::int64_t>(value - foreseen(foresight_, inputs)));
  remember(value, inputs);
}

}  // namespace citcat::view
