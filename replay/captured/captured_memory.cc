#include "replay/captured/captured_memory.h"

#include <algorithm>
#include <cstring>

namespace citcat {

std::uint32_t CapturedMemory::show(BusTransaction& t) const {
  const MemoryImage::Page* const page = image_.find(t.address.page());
  if (page == nullptr) return 0;
  const std::uint32_t offset = t.address.offset_in_page();
  const std::uint32_t size = std::min<std::uint32_t>(t.size, kPageSize - offset);
  switch (size) {  // most are lines of a Pentium or 486, or words of its bus
    case 32:
      std::memcpy(t.data.data(), &page->data[offset], 32);
      break;
    case 16:
      std::memcpy(t.data.data(), &page->data[offset], 16);
      break;
    case 4:
      std::memcpy(t.data.data(), &page->data[offset], 4);
      break;
    default:
      std::copy_n(page->data.begin() + offset, size, t.data.begin());
  }
  return page->valid.bits(offset, size);
}

}  // namespace citcat
