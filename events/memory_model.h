#pragma once
// What the derivation believes memory to hold. Kept apart from MemoryImage because it is asked once
// per bus transaction, at tens of millions a second: pages are found through a small direct-mapped
// table and compared a word at a time.

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "events/address.h"
#include "events/memory_image.h"

namespace citcat {

/// Last known value of every byte seen on the bus, and roughly when it was last accessed.
class MemoryModel {
 public:
  struct Page {
    std::array<std::uint8_t, kPageSize> value{};
    /// One bit a byte, byte 0 of the page in bit 0 of word 0: `value` holds what the bus showed.
    std::array<std::uint64_t, kPageSize / 64> known{};
    /// The same page of the first-read image, once it has a byte there; owned by the image.
    MemoryImage::Page* image = nullptr;
    /// Epoch of the last access to each granule; see granule_shift.
    std::vector<std::uint32_t> epoch;

    bool is_known(std::uint32_t offset) const {
      return (known[offset / 64] >> (offset % 64) & 1) != 0;
    }
  };

  /// Access times are kept for granules of 1 << granule_shift bytes: 0 for processors with a bus
  /// narrower than 32 bits, 2 for the others. An access to part of a granule leaves its time alone,
  /// so the time is never later than the last access to any byte of the granule.
  explicit MemoryModel(unsigned granule_shift) : granule_shift_(granule_shift) {}

  /// The page frame numbered `number`, made when missing. Valid for the life of the model.
  Page& page(std::uint32_t number) {
    Slot& slot = slots_[number % slots_.size()];
    if (slot.page != nullptr && slot.number == number) return *slot.page;
    return find_or_make(number, slot);
  }

  /// Notes that [offset, offset+size) of `page` was accessed in `epoch`.
  void touch(Page& page, std::uint32_t offset, std::uint32_t size, std::uint32_t epoch) const {
    const std::uint32_t round = (1u << granule_shift_) - 1;
    const std::uint32_t end = (offset + size) >> granule_shift_;
    for (std::uint32_t g = (offset + round) >> granule_shift_; g < end; ++g) page.epoch[g] = epoch;
  }
  /// Epoch of the last access that covered the granule of `offset`; 0 when there was none.
  std::uint32_t last_access(const Page& page, std::uint32_t offset) const {
    return page.epoch[offset >> granule_shift_];
  }

  /// Everything known, as an image.
  MemoryImage snapshot() const;
  /// Forgets all pages.
  void clear();

 private:
  struct Slot {
    std::uint32_t number = 0;
    Page* page = nullptr;
  };
  Page& find_or_make(std::uint32_t number, Slot& slot);

  unsigned granule_shift_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Page>> pages_;
  // 16 MiB of working set without a hash look-up.
  std::vector<Slot> slots_ = std::vector<Slot>(4096);
};

}  // namespace citcat
