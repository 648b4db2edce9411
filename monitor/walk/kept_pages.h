#pragma once
// The translations that a processor may still use: those that it has walked for and that nothing
// has dropped since (Intel SDM vol. 3, 4.10). A smaller TLB makes it walk again, but such a walk
// sets no bit unless a program has changed a page table in use and dropped nothing. Then a bit may
// be set if the processor walks; a replay sets none, so the monitor shows none.

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
    std::uint64_t generation = 0;  ///< number of the CR3 at the walk; global pages ignore it
  };

  /// Finds a page by its linear page number; nullptr if it is not kept.
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
  /// CR3 was loaded: only global pages are kept.
  void drop_unglobal() { ++generation_; }
  /// INVLPG: it may drop all pieces of a larger page (Intel SDM vol. 3, 4.10.4.1). `largest`: the
  /// bits of a page number that lie within the largest possible page.
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
  std::size_t most_ = kMost;  ///< beyond so many, pages that were dropped are removed
  std::uint64_t generation_ = 0;
};

}  // namespace citcat::monitor
