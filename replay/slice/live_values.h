#pragma once
// The bytes and flags that a slice looks for at a moment, as it goes back, and which of their bits
// it needs. A flag has all bits or none.

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "replay/slice/slice.h"

namespace citcat {

class LiveValues {
 public:
  /// 0: it does not matter; else a SliceWay.
  std::uint8_t place(unsigned number) const { return places_[number]; }
  std::uint8_t memory(PhysAddr a) const {
    const auto page = pages_.find(a.page());
    return page == pages_.end() ? 0 : page->second->ways[a.offset_in_page()];
  }
  std::uint8_t bits_of_place(unsigned number) const { return bits_[number]; }
  std::uint8_t bits_of_memory(PhysAddr a) const {
    const auto page = pages_.find(a.page());
    return page == pages_.end() ? 0 : page->second->bits[a.offset_in_page()];
  }
  const PlaceSet& places() const { return set_; }
  bool any_of(PhysAddr a, std::uint32_t size) const;
  bool any_memory() const { return !pages_.empty(); }
  bool empty() const { return pages_.empty() && set_.none(); }

  void want_place(unsigned number, SliceWay way, std::uint8_t bits = 0xff);
  void want_memory(PhysAddr a, SliceWay way, std::uint8_t bits = 0xff);
  void forget_place(unsigned number, std::uint8_t bits = 0xff);
  void forget_memory(PhysAddr a, std::uint8_t bits = 0xff);
  /// What is ST(i) now was ST(i - by) before.
  void rotate_stack(int by);
  /// Wants all of them in the nearest way in which any is wanted; nothing where none is.
  void spread_over_stack();
  bool wants_stack() const;

  /// Calls f(PhysAddr, SliceWay) for each byte of memory, in no order.
  template <class F>
  void each_byte(F&& f) const {
    for (const auto& [number, page] : pages_) {
      for (std::uint32_t i = 0; i < kPageSize; ++i) {
        if (page->ways[i] == 0) continue;
        f(PhysAddr{std::uint64_t{number} * kPageSize + i}, static_cast<SliceWay>(page->ways[i]));
      }
    }
  }

 private:
  struct Page {
    std::array<std::uint8_t, kPageSize> ways{}, bits{};
    std::uint32_t count = 0;
  };
  bool may_hold(FrameNumber page) const {
    return (filter_[page / 64 % filter_.size()] >> page % 64 & 1) != 0;
  }

  std::array<std::uint8_t, place::kCount> places_{}, bits_{};
  PlaceSet set_;
  std::unordered_map<FrameNumber, std::unique_ptr<Page>> pages_;
  /// A bit for the pages of the same number modulo its size: most stores go to none of them.
  std::array<std::uint64_t, 512> filter_{};
};

}  // namespace citcat
