#pragma once
// Sparse memory by page frame, in which each byte is known or not: the first-read image of a
// recording, an image captured at the end, or the model that the derivation compares reads with.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "events/machine/address.h"
#include "events/machine/byte_mask.h"

namespace citcat {

class MemoryImage {
 public:
  struct Page {
    std::array<std::uint8_t, kPageSize> data{};
    ByteMask valid;
  };

  /// The page frame numbered `page` (address / 4096, below 1,048,576), or nullptr when no byte of
  /// it is known.
  const Page* find(std::uint32_t page) const { return found(page); }
  /// The same; makes the page frame if it is missing. References stay valid for the life of the
  /// image.
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
  Page* found(std::uint32_t page) const {
    const std::unique_ptr<Table>& table = tables_[page / kPagesInTable];
    return table ? (*table)[page % kPagesInTable] : nullptr;
  }

  void set_in_pages(PhysAddr address, std::span<const std::uint8_t> bytes);

  std::map<std::uint32_t, std::unique_ptr<Page>> pages_;
  /// Finds the pages: a table for each 4 MiB that contain some.
  static constexpr std::uint32_t kPagesInTable = 1024;
  using Table = std::array<Page*, kPagesInTable>;
  std::array<std::unique_ptr<Table>, (std::size_t{1} << 20) / kPagesInTable> tables_;
};

}  // namespace citcat
