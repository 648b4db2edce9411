#include "replay/machine/memory.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "formats/io/error.h"

namespace citcat {

namespace {
/// Frames mapped together. The library has room for 4096 regions, and memory takes two for each
/// chunk (docs/engine.md): with 4 MiB all addresses can be mapped. Frames that nobody touches cost
/// nothing.
constexpr FrameNumber kChunkPages = 1024;
/// The same beyond 4 GiB: as many regions as are left reach further.
constexpr FrameNumber kHighChunkPages = 8 * kChunkPages, kFirstHighPage = 1u << 20;
}  // namespace

Memory::Memory(Engine& engine, std::uint32_t captured_mask, unsigned address_bits)
    : engine_(engine), captured_mask_(captured_mask) {
  all_.set();
  const std::uint32_t pins =
      address_bits >= 32 ? 0xffffffffu : (std::uint32_t{1} << address_bits) - 1;
  const std::uint32_t missing = pins & ~captured_mask;
  // Every combination of the missing bits, by counting through the mask.
  std::uint32_t extra = 0;
  do {
    alias_bits_.push_back(extra);
    extra = (extra - missing) & missing;
  } while (extra != 0 && alias_bits_.size() < 16);
}

void Memory::map_range(FrameNumber first_page, FrameNumber pages) {
  engine_.map(PhysAddr{first_page * kPageSize}, std::uint64_t{pages} * kPageSize);
  const auto place = std::lower_bound(mapped_.begin(), mapped_.end(), first_page);
  const auto added = mapped_.insert(place, pages, 0);
  std::iota(added, added + pages, first_page);
}

bool Memory::ensure_mapped(FrameNumber page) {
  if (is_mapped(page)) return false;
  const FrameNumber pages = page < kFirstHighPage ? kChunkPages : kHighChunkPages;
  const FrameNumber chunk = page / pages * pages;
  FrameNumber first = page, last = page;
  while (first > chunk && !is_mapped(first - 1)) --first;
  while (last + 1 < chunk + pages && !is_mapped(last + 1)) ++last;
  map_range(first, last - first + 1);
  return true;
}

void Memory::load(const MemoryImage& image, std::uint32_t ram_bytes) {
  if (ram_bytes >= kPageSize) map_range(0, ram_bytes / kPageSize);
  for (const auto& [number, page] : image.pages()) {
    for_each_alias(PhysAddr{number * kPageSize}, [&, &bytes = *page](PhysAddr a) {
      ensure_mapped(a.page());
      std::memcpy(host(a), bytes.data.data(), kPageSize);
      tell_watcher(a, kPageSize);
      PageState& state = states_[a.page()];
      state.all_defined = bytes.valid.all();
      if (!state.all_defined) set_mask(state, bytes.valid);
    });
  }
}

void Memory::set_page(FrameNumber number, const std::uint8_t* data, const ByteMask& defined) {
  std::memcpy(engine_.host_page(number), data, kPageSize);
  PageState& state = states_[number];
  state.all_defined = defined.all();
  if (state.all_defined || defined.none()) {
    drop_mask(state);
  } else {
    set_mask(state, defined);
  }
}

void Memory::set_mask(PageState& state, const ByteMask& mask) {
  if (state.defined == nullptr) {
    if (free_masks_.empty()) free_masks_.push_back(&masks_.emplace_back());
    state.defined = free_masks_.back();
    free_masks_.pop_back();
  }
  *state.defined = mask;
}

ByteMask& Memory::defined_bytes(FrameNumber page) {
  PageState& state = states_[page];
  if (state.all_defined) return all_;
  if (state.defined == nullptr) set_mask(state, {});
  return *state.defined;
}

void Memory::set_defined(PhysAddr address, std::uint32_t size, std::uint8_t defined) {
  PageState& state = states_[address.page()];
  const unsigned all = (1u << size) - 1;
  if (state.all_defined && defined == all) return;
  ByteMask& mask = defined_bytes(address.page());
  CITCAT_ASSERT(&mask != &all_);
  for (std::uint32_t i = 0; i < size; ++i) {
    if ((defined >> i & 1) != 0) {
      mask.set(address.offset_in_page() + i);
    } else {
      mask.reset(address.offset_in_page() + i);
    }
  }
}

void Memory::drop_mask(PageState& state) {
  if (state.defined != nullptr) {
    free_masks_.push_back(state.defined);
    ++mask_epoch_;
  }
  state.defined = nullptr;
}

std::vector<FrameNumber> Memory::changed_frames() const {
  std::vector<FrameNumber> changed;
  std::copy_if(mapped_.begin(), mapped_.end(), std::back_inserter(changed),
               [&](FrameNumber number) { return states_[number].changed; });
  return changed;
}

Memory::SavedPages Memory::save_changed() const {
  SavedPages saved;
  saved.reserve(static_cast<std::size_t>(
      std::count_if(mapped_.begin(), mapped_.end(),
                    [&](FrameNumber number) { return states_[number].changed; })));
  auto last = last_saved_.begin();
  for (const FrameNumber number : mapped_) {
    const PageState& state = states_[number];
    if (!state.changed) continue;
    while (last != last_saved_.end() && (*last)->number < number) ++last;
    if (last != last_saved_.end() && (*last)->number == number &&
        is_now(number, (*last)->data.data(), (*last)->defined)) {
      saved.push_back(*last);
      continue;
    }
    auto page = std::make_shared<SavedPage>();
    page->number = number;
    std::memcpy(page->data.data(), engine_.host_page(number), kPageSize);
    if (state.all_defined) {
      page->defined.set();
    } else if (state.defined) {
      page->defined = *state.defined;
    }
    saved.push_back(std::move(page));
  }
  last_saved_ = saved;
  return saved;
}

void Memory::restore(const MemoryImage& image, const SavedPages& pages) {
  constexpr std::array<std::uint8_t, kPageSize> kZeros{};
  auto saved = pages.begin();
  for (const FrameNumber number : mapped_) {
    while (saved != pages.end() && (*saved)->number < number) ++saved;
    PageState& state = states_[number];
    if (!state.changed || (saved != pages.end() && (*saved)->number == number)) continue;
    state.changed = false;
    const MemoryImage::Page* base = image.find(captured(PhysAddr{number * kPageSize}).page());
    if (base != nullptr) {
      put_back(number, base->data.data(), base->valid);
    } else {
      put_back(number, kZeros.data(), ByteMask{});
    }
  }
  for (const auto& page : pages) {
    ensure_mapped(page->number);
    put_back(page->number, page->data.data(), page->defined);
    states_[page->number].changed = true;
  }
  last_saved_ = pages;
}

/// The page holds these bytes, and the same of them are defined.
bool Memory::is_now(FrameNumber number, const std::uint8_t* data, const ByteMask& defined) const {
  const PageState& state = states_[number];
  return std::memcmp(engine_.host_page(number), data, kPageSize) == 0 &&
         (state.all_defined
              ? defined.all()
              : (state.defined != nullptr ? *state.defined == defined : defined.none()));
}

/// Sets a page and drops what was translated from it, when it holds something else or other bytes
/// of it are defined.
void Memory::put_back(FrameNumber number, const std::uint8_t* data, const ByteMask& defined) {
  if (is_now(number, data, defined)) return;
  set_page(number, data, defined);
  tell_watcher(PhysAddr{number * kPageSize}, kPageSize);
  if (states_[number].code) engine_.invalidate_code(PhysAddr{number * kPageSize}, kPageSize);
}

void Memory::mark_partly(PageState& state, PhysAddr address, std::uint32_t size) {
  if (state.defined == nullptr) set_mask(state, {});
  const bool changed = state.defined->set(address.offset_in_page(), size);
  if (changed && state.defined->all()) {
    state.all_defined = true;
    drop_mask(state);
  }
}

void Memory::store(PhysAddr address, std::span<const std::uint8_t> data) {
  while (!data.empty()) {
    const auto room = static_cast<std::size_t>(kPageSize - address.offset_in_page());
    const std::size_t n = std::min(room, data.size());
    ensure_mapped(address.page());
    std::memcpy(host(address), data.data(), n);
    mark_defined(address, static_cast<std::uint32_t>(n));
    if (states_[address.page()].code) {
      engine_.invalidate_code(address, static_cast<std::uint32_t>(n));
    }
    address = address.plus32(static_cast<std::uint32_t>(n));
    data = data.subspan(n);
  }
}

void Memory::take_back(PhysAddr address, std::span<const std::uint8_t> before) {
  std::uint8_t* const at = host(address);
  if (std::memcmp(at, before.data(), before.size()) == 0) return;
  std::memcpy(at, before.data(), before.size());
  tell_watcher(address, static_cast<std::uint32_t>(before.size()));
  if (states_[address.page()].code) {
    engine_.invalidate_code(address, static_cast<std::uint32_t>(before.size()));
  }
}

void Memory::external_write(PhysAddr captured_address, std::span<const std::uint8_t> data) {
  for_each_alias(captured_address, [&](PhysAddr a) { store(a, data); });
}

}  // namespace citcat
