#include "events/memory_model.h"

#include <algorithm>

namespace citcat {

MemoryModel::Page& MemoryModel::find_or_make(std::uint32_t number, Slot& slot) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    if (!words_) page->byte_epoch.resize(kPageSize);
  }
  slot = {number, page.get()};
  return *page;
}

MemoryImage MemoryModel::snapshot() const {
  MemoryImage image;
  for (const auto& [number, page] : pages_) {
    if (std::all_of(page->known.begin(), page->known.end(), [](auto w) { return w == 0; }))
      continue;
    MemoryImage::Page& target = image.page(number);
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (!page->is_known(i)) continue;
      target.data[i] = page->value[i];
      target.valid.set(i);
    }
  }
  return image;
}

void MemoryModel::clear() {
  pages_.clear();
  std::fill(slots_.begin(), slots_.end(), Slot{});
}

}  // namespace citcat
