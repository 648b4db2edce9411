#pragma once
// Sparse memory by page frame, in which each byte is known or not: the first-read image of a
// recording, an image captured at the end, or the model that the derivation compares reads with.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "events/machine/address.h"
#include "events/machine/byte_mask.h"

namespace citcat {

class MemoryImage {
 public:
  struct Page {
    std::array<std::uint8_t, kPageSize> data{};
    ByteMask valid;
  };

  /// The page frame numbered `page` (address / 4096), or nullptr when no byte of it is known.
  const Page* find(FrameNumber page) const { return found(page); }
  /// The same; makes the page frame if it is missing. References stay valid for the life of the
  /// image.
  Page& page(FrameNumber number);

  /// The byte at `address`, or nullopt when nothing is known of it.
  std::optional<std::uint8_t> byte(PhysAddr address) const;
  void set(PhysAddr address, std::uint8_t value);
  void set(PhysAddr address, std::span<const std::uint8_t> bytes);

  /// Known bytes.
  std::uint64_t byte_count() const;
  /// Page frames in ascending order.
  const std::map<FrameNumber, std::unique_ptr<Page>>& pages() const { return pages_; }
  bool empty() const { return pages_.empty(); }
  MemoryImage clone() const;

 private:
  Page* found(FrameNumber page) const {
    if (page >= kPagesInTables) [[unlikely]]
      return found_beyond(page);
    const std::unique_ptr<Table>& table = tables_[page / kPagesInTable];
    return table ? (*table)[page % kPagesInTable] : nullptr;
  }
  Page* found_beyond(FrameNumber page) const {
    const auto found = pages_beyond_.find(page);
    return found == pages_beyond_.end() ? nullptr : found->second;
  }

  Page*& place_of(FrameNumber number);
  void set_in_pages(PhysAddr address, std::span<const std::uint8_t> bytes);

  std::map<FrameNumber, std::unique_ptr<Page>> pages_;
  /// Finds the pages below 4 GiB: a table for each 4 MiB that contain some.
  static constexpr FrameNumber kPagesInTable = 1024, kPagesInTables = 1u << 20;
  using Table = std::array<Page*, kPagesInTable>;
  std::array<std::unique_ptr<Table>, kPagesInTables / kPagesInTable> tables_;
  std::unordered_map<FrameNumber, Page*> pages_beyond_;  ///< the others
};

}  // namespace citcat
