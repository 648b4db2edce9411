#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "formats/memory/zeroed_array.h"

namespace citcat {

/// A value for each page frame of physical memory, by the frame's number; all of them are zero
/// bytes at first. The values for the first 4 GiB lie in one array, where the hot paths find them;
/// those beyond are found by their block. Values stay where they are.
template <class T>
class FrameTable {
 public:
  T& operator[](std::uint64_t frame) {
    if (frame < kFlat) [[likely]]
      return flat_[frame];
    std::unique_ptr<Block>& block = beyond_[frame / kBlock];
    if (!block) block = std::make_unique<Block>();
    return (*block)[frame % kBlock];
  }
  const T& operator[](std::uint64_t frame) const {
    if (frame < kFlat) [[likely]]
      return flat_[frame];
    return find_beyond(frame);
  }

 private:
  static constexpr std::uint64_t kFlat = std::uint64_t{1} << 20;  ///< in 4 GiB
  static constexpr std::size_t kBlock = 1024;
  using Block = std::array<T, kBlock>;

  const T& find_beyond(std::uint64_t frame) const {
    static constexpr T kZero{};
    const auto block = beyond_.find(frame / kBlock);
    return block == beyond_.end() ? kZero : (*block->second)[frame % kBlock];
  }

  ZeroedArray<T> flat_{kFlat};
  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> beyond_;
};

}  // namespace citcat
