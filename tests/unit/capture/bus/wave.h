#pragma once
// Draws pin levels, clock by clock, for tests of the bus decoders. Knows nothing of the decoders.

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "formats/captures/samples.h"

namespace citcat::test {

using Random = std::mt19937_64;

inline unsigned draw(Random& random, unsigned below) {
  return static_cast<unsigned>(random() % below);
}

class Wave final : public SampleSource {
 public:
  /// `names` are the channels; `clock` is the one that ticks; `high_first`: a clock period begins
  /// with its high half (processors that look at rising edges).
  Wave(const std::vector<std::string>& names, const std::string& clock, bool high_first,
       Random& random)
      : random_(random), high_first_(high_first) {
    info_.name = "wave";
    info_.channels = names;
    info_.unit_bytes = (names.size() + 7) / 8;
    levels_.resize(info_.unit_bytes);
    for (std::size_t i = 0; i < names.size(); ++i) index_[names[i]] = i;
    clock_ = index_.at(clock);
  }

  std::size_t channel(const std::string& name) const { return index_.at(name); }

  void set(std::size_t channel, bool level) {
    const auto mask = static_cast<std::uint8_t>(1u << (channel % 8));
    levels_[channel / 8] = static_cast<std::uint8_t>(level ? levels_[channel / 8] | mask
                                                           : levels_[channel / 8] & ~mask);
  }
  /// `count` neighbouring channels, lowest first.
  void set(std::size_t first, unsigned count, std::uint64_t value) {
    for (unsigned i = 0; i < count; ++i) set(first + i, ((value >> i) & 1) != 0);
  }
  /// These channels show anything outside the half of the clock in which they count.
  void float_in_first_half(std::size_t first, unsigned count) { floating_ = {first, count}; }

  /// This channel is low in the second half of the clock, whatever it is set to.
  void fall_in_second_half(std::size_t channel) { falling_ = channel; }

  /// One clock period, one to three samples each half.
  void tick() {
    const auto saved = levels_;
    for (unsigned i = 0; i < floating_.second; ++i) set(floating_.first + i, (random_() & 1) != 0);
    half(high_first_);
    levels_ = saved;
    if (falling_) set(*falling_, false);
    half(!high_first_);
  }

  const SampleInfo& info() const override { return info_; }
  bool next(SampleBlock& out) override {
    if (read_ == bytes_.size()) return false;
    // Blocks of odd sizes, so that decoders meet their borders everywhere.
    const std::size_t count =
        std::min<std::size_t>(1 + random_() % 97, (bytes_.size() - read_) / info_.unit_bytes);
    out.first = read_ / info_.unit_bytes;
    out.bytes = std::span<const std::uint8_t>(bytes_).subspan(read_, count * info_.unit_bytes);
    out.numbers = {};
    read_ += count * info_.unit_bytes;
    return true;
  }

 private:
  void half(bool level) {
    set(clock_, level);
    for (unsigned n = 1 + draw(random_, 3); n != 0; --n)
      bytes_.insert(bytes_.end(), levels_.begin(), levels_.end());
  }

  Random& random_;
  bool high_first_;
  SampleInfo info_;
  std::map<std::string, std::size_t> index_;
  std::size_t clock_ = 0;
  std::pair<std::size_t, unsigned> floating_{0, 0};
  std::optional<std::size_t> falling_;
  std::vector<std::uint8_t> levels_, bytes_;
  std::size_t read_ = 0;
};

/// "A2".."A31" and the like, appended to `names`.
inline void add_names(std::vector<std::string>& names, const std::string& stem, int first,
                      int last) {
  for (int i = first; i <= last; ++i) names.push_back(stem + std::to_string(i));
}

}  // namespace citcat::test
