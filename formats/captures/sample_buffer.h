#pragma once
// Collects single samples into blocks, for readers of formats that come sample by sample.

#include <cstdint>
#include <span>
#include <vector>

#include "formats/captures/samples.h"

namespace citcat {

class SampleBuffer {
 public:
  /// `numbered`: samples carry their own numbers (files of changes) instead of counting on.
  SampleBuffer(std::size_t unit_bytes, bool numbered) : unit_(unit_bytes), numbered_(numbered) {}

  void add(std::span<const std::uint8_t> sample, std::uint64_t number = 0) {
    bytes_.insert(bytes_.end(), sample.begin(), sample.end());
    if (numbered_) numbers_.push_back(number);
  }
  bool full() const { return bytes_.size() >= kBlockBytes; }
  bool empty() const { return bytes_.empty(); }

  /// Hands out what was added since the last call; valid until the next add().
  SampleBlock take() {
    SampleBlock block;
    block.first = numbered_ ? numbers_.front() : total_;
    block.bytes = bytes_;
    block.numbers = numbers_;
    total_ += bytes_.size() / unit_;
    return block;
  }
  /// Forgets what was handed out.
  void clear() {
    bytes_.clear();
    numbers_.clear();
  }

 private:
  static constexpr std::size_t kBlockBytes = 128 * 1024;
  std::size_t unit_;
  bool numbered_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint64_t> numbers_;
  std::uint64_t total_ = 0;
};

/// Sets bit `channel` of a sample.
inline void set_level(std::span<std::uint8_t> sample, std::size_t channel, bool level) {
  const auto mask = static_cast<std::uint8_t>(1u << (channel % 8));
  std::uint8_t& byte = sample[channel / 8];
  byte = static_cast<std::uint8_t>(level ? byte | mask : byte & ~mask);
}

}  // namespace citcat
