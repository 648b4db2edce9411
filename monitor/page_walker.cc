#include "monitor/page_walker.h"

namespace citcat::monitor {

void PageWalker::set_control(std::uint32_t cr0, std::uint32_t cr3, std::uint32_t cr4,
                             bool loads_cr3) {
  // PG, CD, NW of CR0, and PAE, PGE, PSE of CR4 (Intel SDM vol. 3, 4.4.1).
  const bool mode_changes = ((cr0 ^ cr0_) & 0xe0000000) != 0 || ((cr4 ^ cr4_) & 0xb0) != 0;
  cr0_ = cr0;
  cr3_ = cr3;
  cr4_ = cr4;
  bus_.set_cache_disabled((cr0 & 0x40000000) != 0);
  flush();
  if (paging() && pae() && (loads_cr3 || mode_changes)) load_pointers();
}

void PageWalker::set_a20(bool open) {
  const std::uint32_t mask = open ? ~0u : ~(1u << 20);
  if (mask != a20_mask_) flush();
  a20_mask_ = mask;
}

void PageWalker::load_pointers() {
  take_back_pointer_marks();
  for (unsigned n = 0; n < pointers_.size(); ++n)
    pointers_[n] = read_pae_entry((cr3_ & ~0x1fu) + 8 * n, 0).value_or(0);
}

void PageWalker::flush() {
  for (auto& set : tlb_) set.fill(Entry{});
}

PageWalker::Entry* PageWalker::find(std::uint32_t page) {
  for (Entry& entry : tlb_[page % kSets])
    if (entry.page == page) return &entry;
  return nullptr;
}

PageWalker::Entry* PageWalker::usable(std::uint32_t page, bool store) {
  Entry* const held = find(page);
  if (held == nullptr || (store && !held->dirty)) return nullptr;
  const unsigned set_since = *memory_.live(held->at) & ~*memory_.shadow(held->at);
  return (set_since & (kAccessed | kDirty)) == 0 ? held : nullptr;
}

void PageWalker::insert(const Entry& entry) {
  if (Entry* old = find(entry.page)) {
    *old = entry;
    return;
  }
  const unsigned set = entry.page % kSets;
  tlb_[set][next_[set]++ % kWays] = entry;
}

void PageWalker::take_back_pointer_marks() {
  if (!paging() || !pae()) return;
  const std::uint32_t first = cr3_ & ~0x1fu & a20_mask_;
  constexpr std::uint32_t kEntries = 4, kEntryBytes = 8;
  if (!memory_.is_ram(first, kEntries * kEntryBytes) ||
      !memory_.differs(first, kEntries * kEntryBytes))
    return;
  for (std::uint32_t at = first; at < first + kEntries * kEntryBytes; at += kEntryBytes) {
    if (memory_.is_marked(at)) memory_.restore(at, 4);
  }
}

/// What the emulator's walker would make of an entry.
void PageWalker::mark(std::uint32_t address, std::uint32_t bits) {
  const std::uint8_t low = *memory_.live(address);
  if ((low & kPresent) == 0) return;
  const auto marked = static_cast<std::uint8_t>(low | kAccessed | bits);
  memory_.correct(address, {&marked, 1});
}

/// One table entry as it is now. When the emulator's walker set its accessed or dirty bit since we
/// last looked, the bus shows the entry read as it was, then written.
std::optional<std::uint32_t> PageWalker::read_entry(std::uint32_t address, std::uint32_t sets) {
  address &= a20_mask_;
  if (!memory_.is_ram(address, 4)) return std::nullopt;
  if (own_store_) mark(address, sets);
  std::uint32_t now = 0, before = 0;
  std::memcpy(&now, memory_.live(address), 4);
  std::memcpy(&before, memory_.shadow(address), 4);
  const bool walker_was_here = memory_.is_marked(address);
  if (faulting_) {
    if (walker_was_here) memory_.restore(address, 4);
    bus_.read_ram(address, 4);
    return now;
  }
  if ((now & kPresent) != 0) now |= sets;
  if (!walker_was_here) {
    bus_.read_ram(address, 4);
    return now;
  }
  std::array<std::uint8_t, 4> bytes{};
  std::memcpy(bytes.data(), &before, 4);
  bus_.read(address, bytes);
  std::memcpy(bytes.data(), &now, 4);
  memory_.correct(address, bytes);  // the store that makes a page dirty is yet to come
  bus_.write(address, bytes);
  return now;
}

/// What the TLB keeps of a table's entry with the value `entry` at `at`.
PageWalker::Entry PageWalker::entry(std::uint32_t page, std::uint32_t frame, std::uint32_t entry,
                                    std::uint32_t at) const {
  return {page, frame & a20_mask_, (entry & kDirty) != 0, at & a20_mask_};
}

std::optional<PageWalker::Entry> PageWalker::walk(std::uint32_t linear, std::uint32_t sets) {
  ++walks_;
  if (pae()) return walk_pae(linear, sets);
  const std::uint32_t directory_at = (cr3_ & ~0xfffu) + (linear >> 22) * 4;
  const auto directory = read_entry(directory_at, is_large(directory_at, 0x10) ? sets : 0);
  if (!directory || (*directory & kPresent) == 0) return std::nullopt;
  const std::uint32_t page = linear >> 12;
  if ((*directory & kLarge) != 0 && (cr4_ & 0x10) != 0)
    return entry(page, (*directory & 0xffc00000) | (linear & 0x3ff000), *directory, directory_at);
  const std::uint32_t table_at = (*directory & ~0xfffu) + ((linear >> 12) & 0x3ff) * 4;
  const auto table = read_entry(table_at, sets);
  if (!table || (*table & kPresent) == 0) return std::nullopt;
  return entry(page, *table & ~0xfffu, *table, table_at);
}

/// The low half of an entry of 8 bytes that is present.
std::optional<std::uint32_t> PageWalker::read_pae_entry(std::uint32_t address, std::uint32_t sets) {
  const auto low = read_entry(address, sets);
  const auto high = low ? read_entry(address + 4) : std::nullopt;
  if (!high || (*low & kPresent) == 0) return std::nullopt;
  if (*high != 0) {
    met_high_entry_ = true;
    return std::nullopt;
  }
  return low;
}

/// Two levels of tables below the pointers that the processor keeps (Intel SDM vol. 3, 4.4).
std::optional<PageWalker::Entry> PageWalker::walk_pae(std::uint32_t linear, std::uint32_t sets) {
  const std::uint32_t pointer = pointers_[linear >> 30];
  if ((pointer & kPresent) == 0) return std::nullopt;
  const std::uint32_t directory_at = (pointer & ~0xfffu) + ((linear >> 21) & 0x1ff) * 8;
  const auto directory = read_pae_entry(directory_at, is_large(directory_at, 0x20) ? sets : 0);
  if (!directory) return std::nullopt;
  const std::uint32_t page = linear >> 12;
  if ((*directory & kLarge) != 0)
    return entry(page, (*directory & 0xffe00000) | (linear & 0x1ff000), *directory, directory_at);
  const std::uint32_t table_at = (*directory & ~0xfffu) + ((linear >> 12) & 0x1ff) * 8;
  const auto table = read_pae_entry(table_at, sets);
  if (!table) return std::nullopt;
  return entry(page, *table & ~0xfffu, *table, table_at);
}

/// An entry without a trace on the bus; 0 where there is no RAM.
std::uint32_t PageWalker::peek(std::uint32_t address) const {
  address &= a20_mask_;
  std::uint32_t entry = 0;
  if (memory_.is_ram(address, 4)) std::memcpy(&entry, memory_.live(address), 4);
  return entry;
}

/// Whether the directory entry maps a large page, under the bit of CR4 that allows it.
bool PageWalker::is_large(std::uint32_t address, std::uint32_t allowed_by) const {
  return (peek(address) & kLarge) != 0 && (cr4_ & allowed_by) != 0;
}

/// Where the directory's entry for an address is, and the table's, which is the same for a large
/// page. Without a trace on the bus.
std::pair<std::uint32_t, std::uint32_t> PageWalker::entries_of(std::uint32_t linear) const {
  const std::uint32_t pointer = pae() ? pointers_[linear >> 30] : cr3_;
  const std::uint32_t directory_at =
      (pointer & ~0xfffu) + (pae() ? ((linear >> 21) & 0x1ff) * 8 : (linear >> 22) * 4);
  const std::uint32_t directory = peek(directory_at);
  if ((directory & kLarge) != 0 && (cr4_ & 0x30) != 0) return {directory_at, directory_at};
  return {directory_at, (directory & ~0xfffu) +
                            (pae() ? ((linear >> 12) & 0x1ff) * 8 : ((linear >> 12) & 0x3ff) * 4)};
}

std::optional<std::uint32_t> PageWalker::locate(std::uint32_t linear) const {
  if (!paging()) return linear & a20_mask_;
  const auto [directory_at, table_at] = entries_of(linear);
  const std::uint32_t entry = peek(table_at);
  if ((peek(directory_at) & entry & kPresent) == 0) return std::nullopt;
  const std::uint32_t large = pae() ? 0x1fffff : 0x3fffff;
  const std::uint32_t within = is_large(directory_at, 0x30) ? large : 0xfff;
  return ((entry & ~within) | (linear & within)) & a20_mask_;
}

/// The rights of both levels together, without a trace on the bus (Intel SDM vol. 3, 4.6). Pointers
/// to page directories have none.
bool PageWalker::may_store(std::uint32_t linear, bool user) const {
  const auto [directory_at, table_at] = entries_of(linear);
  const std::uint32_t rights = peek(directory_at) & peek(table_at);
  constexpr std::uint32_t kWriteProtect = 0x10000;  // CR0.WP
  if (user) return (rights & kUser) != 0 && (rights & kWritable) != 0;
  return (rights & kWritable) != 0 || (cr0_ & kWriteProtect) == 0;
}

/// The emulator may hold a page whose marks were taken back: a processor makes them once more.
void PageWalker::mark_used(std::uint32_t linear, bool store) {
  const auto [directory_at, table_at] = entries_of(linear);
  const auto use = [this](std::uint32_t at, std::uint32_t bits) {
    if (!memory_.is_ram(at, 4) || (peek(at) & kPresent) == 0 || (peek(at) & bits) == bits) return;
    mark(at, bits);
    bus_.write(at, {memory_.live(at), 4});
  };
  if (directory_at != table_at) use(directory_at & a20_mask_, kAccessed);
  use(table_at & a20_mask_, store ? kAccessed | kDirty : kAccessed);
}

void PageWalker::take_back_marks(std::uint32_t linear) {
  if (!paging()) return;
  const auto [directory_at, table_at] = entries_of(linear);
  for (const std::uint32_t at : {directory_at & a20_mask_, table_at & a20_mask_})
    if (memory_.is_ram(at, 4) && memory_.is_marked(at)) memory_.restore(at, 4);
}

bool PageWalker::was_marked(std::uint32_t linear) const {
  if (!paging()) return false;
  const std::uint32_t at = entries_of(linear).second & a20_mask_;
  if (!memory_.is_ram(at, 1)) return false;
  return (*memory_.live(at) & ~*memory_.shadow(at) & (kAccessed | kDirty)) != 0;
}

bool PageWalker::translate_for_update(std::uint32_t linear, bool user,
                                      std::optional<std::uint32_t> physical) {
  if (!paging()) return true;
  // The walk is shown with the fault. A dirty page may have become read-only, as fork makes it.
  if (!may_store(linear, user)) return false;
  const Entry* const held = usable(linear >> 12, true);
  if (held != nullptr && (!physical || (held->frame | (linear & 0xfff)) == *physical)) return true;
  if (auto entry = walk(linear, kAccessed | kDirty)) {
    entry->dirty = true;
    insert(*entry);
  }
  return true;
}

std::optional<std::uint32_t> PageWalker::translate(std::uint32_t linear, bool store) {
  if (!paging()) return linear & a20_mask_;
  const Entry* const held = usable(linear >> 12, store);
  if (held == nullptr) {
    auto entry = walk(linear);
    if (!entry) return std::nullopt;
    mark_used(linear, store);
    // A store has been made: the page is dirty now, whatever its entry says.
    entry->dirty = entry->dirty || store;
    insert(*entry);
    return entry->frame | (linear & 0xfff);
  }
  return held->frame | (linear & 0xfff);
}

std::optional<std::uint32_t> PageWalker::translate_own_store(std::uint32_t linear) {
  if (!paging() || usable(linear >> 12, true) != nullptr) return translate(linear, true);
  own_store_ = true;
  auto walked = walk(linear, kDirty);
  own_store_ = false;
  if (!walked) return std::nullopt;
  insert(*walked);
  return walked->frame | (linear & 0xfff);
}

std::uint32_t PageWalker::translate_as(std::uint32_t linear, bool store, std::uint32_t physical) {
  auto result = translate(linear, store);
  if (result != physical && paging()) {
    if (Entry* held = find(linear >> 12)) *held = Entry{};
    result = translate(linear, store);
  }
  if (result != physical) ++disagreements_;
  return physical;
}

void PageWalker::faulting_walk(std::uint32_t linear) {
  if (!paging()) return;
  if (Entry* held = find(linear >> 12)) *held = Entry{};
  faulting_ = true;
  (void)walk(linear);
  faulting_ = false;
}

}  // namespace citcat::monitor
