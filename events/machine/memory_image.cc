#include "events/machine/memory_image.h"

#include <algorithm>
#include <cstring>

#include "formats/io/memory_limit.h"

namespace citcat {

/// Where it is noted which page has this number.
MemoryImage::Page*& MemoryImage::place_of(FrameNumber number) {
  if (number >= kPagesInTables) return pages_beyond_[number];
  std::unique_ptr<Table>& table = tables_[number / kPagesInTable];
  if (!table) table = std::make_unique<Table>();
  return (*table)[number % kPagesInTable];
}

MemoryImage::Page& MemoryImage::page(FrameNumber number) {
  Page*& found = place_of(number);
  if (found == nullptr) {
    require_memory((pages_.size() + 1) * sizeof(Page), "memory", number * kPageSize,
                   "bytes of memory that are known");
    found = (pages_[number] = std::make_unique<Page>()).get();
  }
  return *found;
}

std::optional<std::uint8_t> MemoryImage::byte(PhysAddr address) const {
  const Page* const known = find(address.page());
  if (known == nullptr || !known->valid[address.offset_in_page()]) return std::nullopt;
  return known->data[address.offset_in_page()];
}

void MemoryImage::set(PhysAddr address, std::uint8_t value) {
  Page& target = page(address.page());
  target.data[address.offset_in_page()] = value;
  target.valid.set(address.offset_in_page());
}

void MemoryImage::set(PhysAddr address, std::span<const std::uint8_t> bytes) {
  const std::uint32_t offset = address.offset_in_page();
  Page* const known = found(address.page());
  // Nearly all are words, or lines, of pages that are known.
  if (known != nullptr && bytes.size() - 1 < kPageSize - offset) {
    std::memcpy(&known->data[offset], bytes.data(), bytes.size());
    known->valid.set(offset, bytes.size());
    return;
  }
  set_in_pages(address, bytes);
}

void MemoryImage::set_in_pages(PhysAddr address, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    Page& target = page(address.page());
    const std::uint32_t offset = address.offset_in_page();
    const auto n = static_cast<std::uint32_t>(
        std::min<std::size_t>(bytes.size(), std::size_t{kPageSize} - offset));
    std::copy_n(bytes.begin(), n, target.data.begin() + offset);
    target.valid.set(offset, n);
    bytes = bytes.subspan(n);
    // Beyond the last byte of the address space the processor's addresses wrap to 0.
    address = address.plus32(n);
  }
}

std::uint64_t MemoryImage::byte_count() const {
  std::uint64_t count = 0;
  for (const auto& [number, known] : pages_) count += known->valid.count();
  return count;
}

MemoryImage MemoryImage::clone() const {
  MemoryImage copy;
  for (const auto& [number, known] : pages_) {
    copy.page(number) = *known;
  }
  return copy;
}

}  // namespace citcat
