#pragma once
// The translations that a processor may still use: those that it has walked for and that nothing
// has dropped since (Intel SDM vol. 3, 4.10). Its TLB may be smaller, but a walk that it makes once
// more sets no bit, unless a program has changed a page table that is in use and dropped nothing.
// Then it depends on the walk whether bits are set. Replays make none, so the monitor shows none.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "monitor/bus/guest_memory.h"

namespace citcat::monitor {

class KeptPages {
 public:
  struct Page {
    PhysicalAddress frame = 0;
    bool dirty = false, global = false;
    bool large = false;            ///< a piece of a larger page
    std::uint64_t generation = 0;  ///< which CR3 it was walked with; of global pages any
  };

  /// By linear page number; nullptr where there is none.
  const Page* find(std::uint64_t page) const {
    const auto found = pages_.find(page);
    return found != pages_.end() && is_kept(found->second) ? &found->second : nullptr;
  }
  void keep(std::uint64_t page, Page its) {
    its.generation = generation_;
    if (pages_.size() >= most_) forget_dropped();
    pages_[page] = its;
  }
  void drop(std::uint64_t page) { pages_.erase(page); }
  void drop_all() { pages_.clear(); }
  /// CR3 was loaded.
  void drop_unglobal() { ++generation_; }
  /// INVLPG: of larger pages all pieces may be dropped (Intel SDM vol. 3, 4.10.4.1). `largest`:
  /// the page number's bits that are within the largest page there may be.
  void invalidate(std::uint64_t page, std::uint64_t largest) {
    drop(page);
    std::erase_if(pages_, [&](const auto& item) {
      return item.second.large && ((item.first ^ page) & ~largest) == 0;
    });
  }

 private:
  bool is_kept(const Page& page) const { return page.global || page.generation == generation_; }
  void forget_dropped() {
    std::erase_if(pages_, [this](const auto& item) { return !is_kept(item.second); });
    most_ = std::max(kMost, 2 * pages_.size());
  }

  static constexpr std::size_t kMost = 1 << 14;
  std::unordered_map<std::uint64_t, Page> pages_;
  std::size_t most_ = kMost;  ///< there may be as many before those that were dropped are removed
  std::uint64_t generation_ = 0;
};

}  // namespace citcat::monitor
