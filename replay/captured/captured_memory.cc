#include "replay/captured/captured_memory.h"

#include <algorithm>
#include <cstring>

namespace citcat {

std::uint32_t show(const MemoryImage& image, BusTransaction& read) {
  const MemoryImage::Page* const page = image.find(read.address.page());
  if (page == nullptr) return 0;
  const std::uint32_t offset = read.address.offset_in_page();
  const std::uint32_t size = std::min<std::uint32_t>(read.size, kPageSize - offset);
  switch (size) {  // most are lines of a Pentium or 486, or words of its bus
    case 32:
      std::memcpy(read.data.data(), &page->data[offset], 32);
      break;
    case 16:
      std::memcpy(read.data.data(), &page->data[offset], 16);
      break;
    case 4:
      std::memcpy(read.data.data(), &page->data[offset], 4);
      break;
    default:
      std::copy_n(page->data.begin() + offset, size, read.data.begin());
  }
  return page->valid.bits(offset, size);
}

}  // namespace citcat
