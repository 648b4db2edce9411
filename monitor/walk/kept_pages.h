#pragma once
// The translations that a processor may hold: those that it has walked for and that nothing has
// dropped since (Intel SDM vol. 3, 4.10). A real TLB is smaller, but a program can see the
// difference only if it changes a page table that is in use without dropping its translations.

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "monitor/bus/guest_memory.h"
#include "monitor/state/control_registers.h"

namespace citcat::monitor {

class KeptPages {
 public:
  struct Page {
    PhysicalAddress frame = 0;
    std::uint64_t rights = 0;  ///< what makes an access fault: equal numbers allow the same
    bool dirty = false;        ///< a store needs no walk
    bool global = false;
    bool large = false;  ///< a piece of a larger page
  };

  /// By linear page number, for a load or a store that needs no walk; nullptr if it is not held.
  const Page* find(std::uint64_t page, bool store = false) const {
    const Item* const found = item(page);
    if (found == nullptr || !is_held(page, found->second)) return nullptr;
    return !store || found->second.page.dirty ? &found->second.page : nullptr;
  }
  void keep(std::uint64_t page, const Page& its) {
    if (pages_.size() >= most_) forget_dropped();
    pages_[page] = {its, ++now_};
  }
  /// A store to a page that is held needs no further walk.
  void store(std::uint64_t page) { pages_[page].page.dirty = true; }
  void drop(std::uint64_t page) {
    recent(page) = nullptr;
    pages_.erase(page);
  }
  /// Control registers are written: drops what a processor drops (Intel SDM vol. 3, 4.10.4.1).
  void change_control(const ControlRegisters& before, const ControlRegisters& after,
                      bool loads_cr3) {
    // PG and WP; PSE, PAE, PGE, SMEP, SMAP; LMA and NXE.
    constexpr std::uint32_t kOfCr0 = 0x80010000, kOfCr4 = 0x3000b0, kOfEfer = 0xc00;
    if (((before.cr0 ^ after.cr0) & kOfCr0) != 0 || ((before.cr4 ^ after.cr4) & kOfCr4) != 0 ||
        ((before.efer ^ after.efer) & kOfEfer) != 0)
      all_dropped_ = now_;
    else if (loads_cr3)
      unglobal_dropped_ = now_;
  }
  /// INVLPG: the page, and all pieces of the large page that it belongs to (Intel SDM vol. 3,
  /// 4.10.4.1), which is of 2 MiB at least.
  void invalidate(std::uint64_t page) {
    drop(page);
    large_dropped_[page >> kLargeShift] = now_;
  }

 private:
  struct Held {
    Page page;
    std::uint64_t since = 0;  ///< of `now_`
  };
  using Item = std::pair<const std::uint64_t, Held>;
  static constexpr std::size_t kMost = 1 << 14, kRecent = 1 << 10;
  static constexpr unsigned kLargeShift = 9;  ///< of page numbers

  const Item*& recent(std::uint64_t page) const { return recent_[page % kRecent]; }
  /// The entry of a page, held or not; nullptr if there is none. Searching a bucket would take most
  /// of a walk's time.
  const Item* item(std::uint64_t page) const {
    const Item*& its = recent(page);
    if (its != nullptr && its->first == page) return its;
    const auto found = pages_.find(page);
    return found == pages_.end() ? nullptr : its = &*found;
  }
  bool is_held(std::uint64_t page, const Held& held) const {
    if (held.since <= all_dropped_ || (!held.page.global && held.since <= unglobal_dropped_))
      return false;
    if (!held.page.large) return true;
    const auto dropped = large_dropped_.find(page >> kLargeShift);
    return dropped == large_dropped_.end() || held.since > dropped->second;
  }
  void forget_dropped() {
    recent_.fill(nullptr);
    std::erase_if(pages_, [this](const auto& item) { return !is_held(item.first, item.second); });
    most_ = kMost + 2 * pages_.size();
  }

  std::unordered_map<std::uint64_t, Held> pages_;
  mutable std::array<const Item*, kRecent> recent_{};  ///< where items are: they are not moved
  std::unordered_map<std::uint64_t, std::uint64_t> large_dropped_;  ///< when, by region
  std::size_t most_ = kMost;  ///< there may be as many before those that were dropped are removed
  std::uint64_t now_ = 0, all_dropped_ = 0, unglobal_dropped_ = 0;
};

}  // namespace citcat::monitor
