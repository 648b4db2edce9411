#include "events/derive/memory_model.h"

#include <algorithm>

namespace citcat {

bool MemoryModel::LineBytes::holds(std::span<const std::uint8_t> bytes) const {
  for (std::uint32_t i = 0; i < size_; ++i) {
    const std::uint32_t at = first_ + i;
    const bool known = (line_.note[at / 4] >> (kEpochBits + at % 4) & 1) != 0;
    if (!known || line_.value[at] != bytes[i]) return false;
  }
  return true;
}

void MemoryModel::LineBytes::put(std::span<const std::uint8_t> bytes) const {
  for (std::uint32_t i = 0; i < size_; ++i) {
    const std::uint32_t at = first_ + i;
    line_.value[at] = bytes[i];
    line_.note[at / 4] |= std::uint32_t{1} << (kEpochBits + at % 4);
  }
}

void MemoryModel::LineBytes::touch(std::uint32_t epoch) const {
  for (std::uint32_t word = (first_ + 3) / 4; word < (first_ + size_) / 4; ++word)
    line_.note[word] = kWholeWord | epoch;
}

MemoryModel::Page& MemoryModel::find_or_make(FrameNumber number, Slot& slot) {
  std::unique_ptr<Page>& page = pages_[number];
  if (!page) {
    page = std::make_unique<Page>();
    if (!words_) page->byte_epoch.resize(kPageSize);
  }
  slot = {number, page.get()};
  return *page;
}

void MemoryModel::find_lines(std::span<const std::uint32_t> addresses, std::span<Line*> lines) {
  CITCAT_ASSERT(addresses.size() <= lines.size());
  // What is written meanwhile leaves these alone, which the compiler cannot know.
  Slot* const slots = slots_.data();
  Line** line = lines.data();
  for (const std::uint32_t address : addresses) {
    const PhysAddr place{address};
    Slot& slot = slots[place.page() % kSlots];
    Page* page = slot.page;
    if (slot.number != place.page()) [[unlikely]]
      page = &find_or_make(place.page(), slot);
    *line = &page->line(place.offset_in_page());
    __builtin_prefetch(*line, 1);
    ++line;
  }
}

MemoryImage MemoryModel::snapshot() const {
  MemoryImage image;
  for (const auto& [number, page] : pages_) {
    MemoryImage::Page* target = nullptr;
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (!page->is_known(i)) continue;
      if (target == nullptr) target = &image.page(number);
      target->data[i] = page->value(i);
      target->valid.set(i);
    }
  }
  return image;
}

void MemoryModel::clear() {
  pages_.clear();
  std::fill(slots_.begin(), slots_.end(), Slot{});
}

}  // namespace citcat
