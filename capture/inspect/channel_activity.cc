#include "capture/inspect/channel_activity.h"

#include <bit>

namespace citcat {

ChannelActivity::ChannelActivity(SampleSource& source, std::size_t bytes) : info_(source.info()) {
  std::uint64_t first = 0;
  std::size_t read = 0;
  for (SampleBlock block; read < bytes && source.next(block); read += block.bytes.size()) {
    if (kept_.empty()) first = block.first;
    kept_.push_back(
        {{block.bytes.begin(), block.bytes.end()}, {block.numbers.begin(), block.numbers.end()}});
  }
  for (const Kept& kept : kept_) {
    blocks_.push_back({first, kept.bytes, kept.numbers});
    first += kept.bytes.size() / info_.unit_bytes;
  }
  count_changes();
}

void ChannelActivity::count_changes() {
  const std::size_t unit = info_.unit_bytes;
  changes_.assign(unit * 8, 0);
  const std::uint8_t* before = nullptr;
  for (const Kept& kept : kept_) {
    for (std::size_t at = 0; at + unit <= kept.bytes.size(); at += unit) {
      const std::uint8_t* const sample = kept.bytes.data() + at;
      for (std::size_t byte = 0; before != nullptr && byte < unit; ++byte) {
        for (auto changed = static_cast<unsigned>(sample[byte] ^ before[byte]); changed != 0;
             changed &= changed - 1)
          ++changes_[byte * 8 + static_cast<std::size_t>(std::countr_zero(changed))];
      }
      before = sample;
    }
  }
  changes_.resize(channels());
}

void ChannelActivity::add_clock(const std::uint8_t* before, const std::uint8_t* first,
                                const std::uint8_t* last) {
  const std::uint64_t bit = std::uint64_t{1} << (clocks_ % 64);
  for (std::size_t channel = 0; channel < channels(); ++channel) {
    if (clocks_ % 64 == 0) {
      before_[channel].push_back(0);
      begin_[channel].push_back(0);
      end_[channel].push_back(0);
    }
    if (level(before, channel)) before_[channel].back() |= bit;
    if (level(first, channel)) begin_[channel].back() |= bit;
    if (level(last, channel)) end_[channel].back() |= bit;
  }
  ++clocks_;
}

void ChannelActivity::set_clock(std::size_t channel, bool low_phases) {
  clocks_ = 0;
  before_.assign(channels(), {});
  begin_.assign(channels(), {});
  end_.assign(channels(), {});
  const std::uint8_t* before = nullptr;  // the last sample of the other phase
  const std::uint8_t* first = nullptr;
  const std::uint8_t* last = nullptr;
  for (const Kept& kept : kept_) {
    for (std::size_t at = 0; at + info_.unit_bytes <= kept.bytes.size(); at += info_.unit_bytes) {
      const std::uint8_t* const sample = kept.bytes.data() + at;
      if (level(sample, channel) != low_phases) {
        if (first == nullptr) first = sample;
        last = sample;
      } else {
        if (first != nullptr) add_clock(before != nullptr ? before : first, first, last);
        first = nullptr;
        before = sample;
      }
    }
  }
}

}  // namespace citcat
