#pragma once
// What the derivation believes memory to hold. Kept apart from MemoryImage because it is asked once
// per bus transaction, at tens of millions a second: pages are found through a small direct-mapped
// table and compared a word at a time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "events/address.h"
#include "events/memory_image.h"
#include "formats/error.h"

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
    /// Epoch of the last access to each granule: aligned words, or bytes; see granule_shift.
    std::array<std::uint32_t, kPageSize / 4> word_epoch{};
    std::vector<std::uint32_t> byte_epoch;

    bool is_known(std::uint32_t offset) const {
      return (known[offset / 64] >> (offset % 64) & 1) != 0;
    }
  };

  /// Access times are kept for granules of 1 << granule_shift bytes: 0 for processors with a bus
  /// narrower than 32 bits, 2 for the others. An access to part of a granule leaves its time alone,
  /// so the time is never later than the last access to any byte of the granule.
  explicit MemoryModel(unsigned granule_shift) : words_(granule_shift != 0) {
    CITCAT_ASSERT(granule_shift == 0 || granule_shift == 2);
  }

  /// The page frame numbered `number`, made when missing. Valid for the life of the model.
  Page& page(std::uint32_t number) {
    Slot& slot = slots_[number % kSlots];
    if (slot.page != nullptr && slot.number == number) return *slot.page;
    return find_or_make(number, slot);
  }

  /// Asks the processor's caches for what an access to `address` will need soon.
  void prefetch(PhysAddr address) const {
    const Slot& slot = slots_[address.page() % kSlots];
    if (slot.page == nullptr) return;
    const std::uint32_t offset = address.offset_in_page();
    __builtin_prefetch(&slot.page->value[offset]);
    __builtin_prefetch(&slot.page->known[offset / 64]);
    __builtin_prefetch(&slot.page->word_epoch[offset / 4]);
  }

  /// Notes that [offset, offset+size) of `page` was accessed in `epoch`.
  void touch(Page& page, std::uint32_t offset, std::uint32_t size, std::uint32_t epoch) const {
    if (!words_) {
      std::fill_n(page.byte_epoch.begin() + offset, size, epoch);
      return;
    }
    const std::uint32_t first = (offset + 3) / 4, end = (offset + size) / 4;
    constexpr std::uint32_t kLinePart = 4;  // words; nearly all of a captured machine with caches
    if (end - first == kLinePart) {
      const std::array<std::uint32_t, kLinePart> epochs{epoch, epoch, epoch, epoch};
      std::memcpy(std::span(page.word_epoch).subspan(first).data(), epochs.data(), sizeof epochs);
      return;
    }
    for (std::uint32_t word = first; word < end; ++word) page.word_epoch[word] = epoch;
  }
  /// Epoch of the last access that covered the granule of `offset`; 0 when there was none.
  std::uint32_t last_access(const Page& page, std::uint32_t offset) const {
    return words_ ? page.word_epoch[offset / 4] : page.byte_epoch[offset];
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

  bool words_;  ///< granules are words, not bytes
  std::unordered_map<std::uint32_t, std::unique_ptr<Page>> pages_;
  // 16 MiB of working set without a hash look-up.
  static constexpr std::size_t kSlots = 4096;
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

}  // namespace citcat
