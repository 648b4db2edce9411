#pragma once
// Memory with a validity mask per byte: the first-read image of a recording, a captured final
// image, the model the derivation compares reads with. Sparse, by page frame.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "events/address.h"
#include "events/byte_mask.h"

namespace citcat {

class MemoryImage {
 public:
  struct Page {
    std::array<std::uint8_t, kPageSize> data{};
    ByteMask valid;
  };

  /// The page frame numbered `page` (address / 4096), or nullptr when no byte of it is known.
  const Page* find(std::uint32_t page) const {
    Recent& recent = recent_[page % recent_.size()];
    if (recent.number == page) return recent.page;
    const auto it = pages_.find(page);
    if (it == pages_.end()) return nullptr;
    recent = {page, it->second.get()};
    return recent.page;
  }
  /// The same, made when missing. References stay valid for the life of the image.
  Page& page(std::uint32_t number);

  /// The byte at `address`, or nullopt when nothing is known of it.
  std::optional<std::uint8_t> byte(PhysAddr address) const;
  void set(PhysAddr address, std::uint8_t value);
  void set(PhysAddr address, std::span<const std::uint8_t> bytes);

  /// Known bytes.
  std::uint64_t byte_count() const;
  /// Page frames in ascending order.
  const std::map<std::uint32_t, std::unique_ptr<Page>>& pages() const { return pages_; }
  bool empty() const { return pages_.empty(); }
  MemoryImage clone() const;

 private:
  std::map<std::uint32_t, std::unique_ptr<Page>> pages_;
  /// Found last, of the pages that share a place.
  struct Recent {
    std::uint32_t number = 0xffffffff;
    Page* page = nullptr;
  };
  mutable std::array<Recent, 512> recent_{};
};

}  // namespace citcat
