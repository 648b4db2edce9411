#include "monitor/walk/page_walker.h"

namespace citcat::monitor {

void PageWalker::set_control(const ControlRegisters& control, bool loads_cr3) {
  // PG, CD, NW of CR0, and PAE, PGE, PSE of CR4 (Intel SDM vol. 3, 4.4.1).
  const bool mode_changes = ((control.cr0 ^ control_.cr0) & 0xe0000000) != 0 ||
                            ((control.cr4 ^ control_.cr4) & 0xb0) != 0;
  kept_.change_control(control_, control, loads_cr3);
  control_ = control;
  reach_ = long_mode() ? ~std::uint64_t{0} : ~0u;
  bus_.set_cache_disabled((control_.cr0 & 0x40000000) != 0);
  flush();
  if (keeps_pointers() && (loads_cr3 || mode_changes)) load_pointers();
}

void PageWalker::set_a20(bool open) {
  const PhysicalAddress mask = ~(open ? PhysicalAddress{0} : PhysicalAddress{1} << 20);
  if (mask != a20_mask_) flush();
  a20_mask_ = mask;
}

void PageWalker::load_pointers() {
  take_back_pointer_marks();
  for (unsigned n = 0; n < pointers_.size(); ++n)
    pointers_[n] = read_pae_entry(pointers_at() + 8 * n, 0, Names::table).value_or(0);
}

void PageWalker::flush() {
  for (auto& set : tlb_) set.fill(Entry{});
}

void PageWalker::invalidate(std::uint64_t linear) {
  flush();
  kept_.invalidate(reach(linear) >> 12);
}

void PageWalker::insert(const Entry& entry) {
  if (Entry* old = find(entry.page)) {
    *old = entry;
    return;
  }
  const unsigned set = entry.page % kSets;
  tlb_[set][next_[set]++ % kWays] = entry;
}

/// Without paging there is no walk, and no mark to be set.
const PageWalker::Entry* PageWalker::insert_unpaged(std::uint64_t page) {
  static constexpr std::uint8_t kNoMark = 0;
  const PhysicalAddress frame = page << 12 & a20_mask_;
  return &(tlb_[page % kSets][page / kSets % kWays] = {page, frame, &kNoMark, &kNoMark,
                                                       bus_.page_in_ram(frame), true});
}

void PageWalker::take_back_kept_marks() {
  const PhysicalAddress first = pointers_at() & a20_mask_;
  constexpr std::uint32_t kEntries = 4, kEntryBytes = 8;
  if (!memory_.is_ram(first, kEntries * kEntryBytes) ||
      !memory_.differs(first, kEntries * kEntryBytes))
    return;
  for (PhysicalAddress at = first; at < first + kEntries * kEntryBytes; at += kEntryBytes) {
    if (memory_.is_marked(at)) memory_.restore(at, 4);
  }
}

/// What the emulator's walker would make of an entry of 4 or 8 bytes.
std::uint64_t PageWalker::mark(PhysicalAddress address, unsigned size, std::uint32_t bits) {
  std::uint64_t entry = 0;
  std::memcpy(&entry, memory_.live(address), size);
  if ((entry & kPresent) == 0) return entry;
  entry |= kAccessed | bits;
  const auto low = static_cast<std::uint8_t>(entry);
  memory_.correct(address, {&low, 1});
  return entry;
}

/// One table entry as it is now. When the emulator's walker set its accessed or dirty bit since we
/// last looked, the bus shows the entry read as it was, then written.
std::optional<std::uint32_t> PageWalker::read_entry(PhysicalAddress address, std::uint32_t sets,
                                                    Names names) {
  const auto entry = read_entry_of(address & a20_mask_, 4, sets, names);
  return entry ? std::optional(static_cast<std::uint32_t>(*entry)) : std::nullopt;
}

/// The same for an entry of 4 or 8 bytes. Marks are in the lowest one. A table may name itself, so
/// that one entry is of several levels: only where it names a page does a store make it dirty.
std::optional<std::uint64_t> PageWalker::read_entry_of(PhysicalAddress address, unsigned size,
                                                       std::uint32_t sets, Names names) {
  if (!memory_.is_ram(address, size)) return std::nullopt;
  std::uint64_t now = 0;
  std::memcpy(&now, memory_.live(address), size);
  if (own_store_) now = mark(address, size, sets);
  const bool walker_was_here = memory_.is_mark(address, static_cast<std::uint32_t>(now));
  if (faulting_) {
    if (walker_was_here) memory_.restore(address, 4);
    bus_.read_ram(address, size);
    return now;
  }
  if ((now & kPresent) != 0) now |= sets;
  if (!walker_was_here) {
    bus_.read_ram(address, size);
    return now;
  }
  met_marks_ |=
      *memory_.live(address) & ~*std::as_const(memory_).shadow(address) & (kAccessed | kDirty);
  std::array<std::uint8_t, 8> bytes{};
  std::memcpy(bytes.data(), memory_.live(address), size);
  std::memcpy(bytes.data(), memory_.shadow(address), 4);
  if (names == Names::table && (bytes[0] & kDirty) == 0) now &= ~std::uint64_t{kDirty};
  const auto entry = std::span(bytes).first(size);
  bus_.read(address, entry);
  std::memcpy(bytes.data(), &now, size);
  memory_.correct(address, entry);  // the store that makes a page dirty is yet to come
  bus_.write(address, entry);
  return now;
}

/// What the TLB keeps of a table's entry with the value `entry` at `at`.
PageWalker::Entry PageWalker::entry(std::uint64_t page, PhysicalAddress frame, std::uint32_t entry,
                                    PhysicalAddress at, bool large) const {
  constexpr std::uint32_t kGlobal = 0x100, kGlobalPages = 0x80;  // the second one of CR4
  const PhysicalAddress place = at & a20_mask_;
  frame &= a20_mask_;
  return {page,
          frame,
          memory_.live(place),
          std::as_const(memory_).shadow(place),
          bus_.page_in_ram(frame),
          (entry & kDirty) != 0,
          (entry & kGlobal) != 0 && (control_.cr4 & kGlobalPages) != 0,
          large};
}

std::optional<PageWalker::Entry> PageWalker::walk(std::uint64_t address, std::uint32_t sets) {
  ++walks_;
  met_marks_ = 0;
  if (long_mode()) return walk_four_levels(address, sets);
  const auto linear = static_cast<std::uint32_t>(address);
  if (pae()) return walk_pae(linear, sets);
  const PhysicalAddress directory_at = directory_base() + (linear >> 22) * 4;
  const bool large = is_large(directory_at, 0x10);
  const auto directory =
      read_entry(directory_at, large ? sets : 0, large ? Names::page : Names::table);
  if (!directory || (*directory & kPresent) == 0) return std::nullopt;
  const std::uint32_t page = linear >> 12;
  if ((*directory & kLarge) != 0 && (control_.cr4 & 0x10) != 0) {
    const PhysicalAddress frame = large_page(*directory) | (linear & 0x3ff000);
    return entry(page, frame, *directory, directory_at, true);
  }
  const PhysicalAddress table_at = (*directory & ~0xfffu) + ((linear >> 12) & 0x3ff) * 4;
  const auto table = read_entry(table_at, sets);
  if (!table || (*table & kPresent) == 0) return std::nullopt;
  return entry(page, *table & ~0xfffu, *table, table_at, false);
}

/// An entry of 8 bytes that is present.
std::optional<std::uint64_t> PageWalker::read_pae_entry(PhysicalAddress address, std::uint32_t sets,
                                                        Names names) {
  const auto low = read_entry(address, sets, names);
  const auto high = low ? read_entry(address + 4) : std::nullopt;
  if (!high || (*low & kPresent) == 0) return std::nullopt;
  return std::uint64_t{*high} << 32 | *low;
}

/// Two levels of tables below the pointers that the processor keeps (Intel SDM vol. 3, 4.4).
std::optional<PageWalker::Entry> PageWalker::walk_pae(std::uint32_t linear, std::uint32_t sets) {
  const std::uint64_t pointer = pointers_[linear >> 30];
  if ((pointer & kPresent) == 0) return std::nullopt;
  const PhysicalAddress directory_at = named_by(pointer) + ((linear >> 21) & 0x1ff) * 8;
  const bool large = is_large(directory_at, 0x20);
  const auto named =
      read_pae_entry(directory_at, large ? sets : 0, large ? Names::page : Names::table);
  if (!named) return std::nullopt;
  const std::uint32_t page = linear >> 12;
  if ((*named & kLarge) != 0) {
    const PhysicalAddress frame =
        named_by((*named & ~std::uint64_t{0x1fffff}) | (linear & 0x1ff000));
    return entry(page, frame, static_cast<std::uint32_t>(*named), directory_at, true);
  }
  const PhysicalAddress table_at = named_by(*named) + ((linear >> 12) & 0x1ff) * 8;
  const auto last = read_pae_entry(table_at, sets, Names::page);
  if (!last) return std::nullopt;
  return entry(page, named_by(*last), static_cast<std::uint32_t>(*last), table_at, false);
}

/// An entry without a trace on the bus; 0 where there is no RAM.
std::uint32_t PageWalker::peek(PhysicalAddress address) const {
  address &= a20_mask_;
  std::uint32_t entry = 0;
  if (memory_.is_ram(address, 4)) std::memcpy(&entry, memory_.live(address), 4);
  return entry;
}

/// The same of an entry of eight bytes.
std::uint64_t PageWalker::peek_wide(PhysicalAddress address) const {
  address &= a20_mask_;
  std::uint64_t entry = 0;
  if (memory_.is_ram(address, 8)) std::memcpy(&entry, memory_.live(address), 8);
  return entry;
}

/// Whether the directory entry maps a large page, under the bit of CR4 that allows it.
bool PageWalker::is_large(PhysicalAddress address, std::uint32_t allowed_by) const {
  return (peek(address) & kLarge) != 0 && (control_.cr4 & allowed_by) != 0;
}

/// The entries for an address, without a trace on the bus. With entries of eight bytes the last one
/// is that which is not present, if there is one.
PageWalker::Path PageWalker::path_of(std::uint64_t address) const {
  if (long_mode()) return four_level_path(address);
  const auto linear = static_cast<std::uint32_t>(address);
  const std::uint64_t pointer = pointers_[linear >> 30];
  const PhysicalAddress named = (pointer & kPresent) != 0 ? named_by(pointer) : kNowhere;
  const PhysicalAddress table = pae() ? named : directory_base();
  Path path;
  path.at[0] = table + (pae() ? ((linear >> 21) & 0x1ff) * 8 : (linear >> 22) * 4);
  path.count = 1;
  const std::uint32_t directory = peek(path.at[0]);
  if (is_large(path.at[0], 0x30)) {
    path.within = pae() ? 0x1fffff : 0x3fffff;
    return path;
  }
  if (!pae()) {
    path.at[1] = (directory & ~0xfffu) + ((linear >> 12) & 0x3ff) * 4;
  } else {
    if ((directory & kPresent) == 0) return path;
    path.at[1] = named_by(peek_wide(path.at[0])) + ((linear >> 12) & 0x1ff) * 8;
  }
  path.count = 2;
  return path;
}

std::optional<PhysicalAddress> PageWalker::locate(std::uint64_t address) const {
  const std::uint64_t linear = reach(address);
  if (!paging()) return linear & a20_mask_;
  const Path path = path_of(linear);
  std::uint32_t present = kPresent;
  for (unsigned n = 0; n < path.count; ++n) present &= peek(path.at[n]);
  if (present == 0) return std::nullopt;
  const std::uint64_t within = path.within;
  const bool large = !pae() && within > 0xfff;
  const std::uint64_t last = pae()   ? peek_wide(path.last()) & kAddress
                             : large ? large_page(peek(path.last()))
                                     : peek(path.last());
  return ((last & ~within) | (linear & within)) & a20_mask_;
}

/// The emulator finds another page only if it walks again, through tables that have changed.
void PageWalker::confirm(std::uint64_t linear, bool user, bool stored) {
  const std::uint64_t page = reach(linear) >> 12;
  Entry& held = *found_[page % kFound];
  if (held.page != page || held.in_ram.live == nullptr || !held.in_ram.plain) return;
  if (paging()) {
    const Path path = path_of(reach(linear));
    for (unsigned n = 0; n < path.count; ++n)
      memory_.note_use(path.at[n] & a20_mask_, GuestMemory::kTable);
    if (locate(linear) != (held.frame | (linear & 0xfff))) return;
  }
  if (held.sure_at != memory_.table_stores()) held.sure_for = 0;
  held.sure_at = memory_.table_stores();
  held.sure_for |= static_cast<std::uint8_t>(HeldPage::sure_bit(user, false));
  if (stored && (!paging() || may_store(reach(linear), user)))
    held.sure_for |= static_cast<std::uint8_t>(HeldPage::sure_bit(user, true));
}

/// The rights of all levels together, without a trace on the bus: a bit is set if no level denies
/// it (Intel SDM vol. 3, 4.6). Pointers to page directories of PAE have none.
std::uint64_t PageWalker::rights_of(std::uint64_t linear) const {
  constexpr std::uint64_t kNoExecute = std::uint64_t{1} << 63;
  const Path path = path_of(linear);
  std::uint64_t rights = kNoExecute | kPresent | kWritable | kUser;
  for (unsigned n = 0; n < path.count; ++n)
    rights &= (pae() ? peek_wide(path.at[n]) : peek(path.at[n])) ^ kNoExecute;
  return rights;
}

bool PageWalker::may_store(std::uint64_t linear, bool user) const {
  const std::uint64_t rights = rights_of(linear);
  constexpr std::uint32_t kWriteProtect = 0x10000;  // CR0.WP
  if (user) return (rights & kUser) != 0 && (rights & kWritable) != 0;
  return (rights & kWritable) != 0 || (control_.cr0 & kWriteProtect) == 0;
}

/// The emulator may hold a page whose marks were taken back: a processor makes them once more.
void PageWalker::mark_used(std::uint64_t linear, bool store) {
  const Path path = path_of(linear);
  const auto use = [this](PhysicalAddress at, std::uint32_t bits) {
    if (!memory_.is_ram(at, 4) || (peek(at) & kPresent) == 0 || (peek(at) & bits) == bits) return;
    const unsigned size = long_mode() ? 8 : 4;
    const std::uint64_t marked = mark(at, size, bits);
    bus_.write(at, {reinterpret_cast<const std::uint8_t*>(&marked), size});
  };
  for (unsigned n = 0; n + 1 < path.count; ++n) use(path.at[n] & a20_mask_, kAccessed);
  use(path.last() & a20_mask_, store ? kAccessed | kDirty : kAccessed);
}

void PageWalker::take_back_marks(std::uint64_t linear) {
  if (!paging()) return;
  const Path path = path_of(linear);
  for (unsigned n = 0; n < path.count; ++n) {
    const PhysicalAddress at = path.at[n] & a20_mask_;
    if (memory_.is_ram(at, 4) && memory_.is_marked(at)) memory_.restore(at, 4);
  }
}

bool PageWalker::was_marked(std::uint64_t linear) const {
  if (!paging()) return false;
  const PhysicalAddress at = path_of(linear).last() & a20_mask_;
  if (!memory_.is_ram(at, 1)) return false;
  return (*memory_.live(at) & ~*memory_.shadow(at) & (kAccessed | kDirty)) != 0;
}

/// A walk has been made for a page of which a processor holds `kept`, or nothing. `stored`: a store
/// has been made, or is about to be.
void PageWalker::fill(const Entry& walked, const KeptPages::Page* kept, bool stored) {
  // Where the walk was the emulator's and says something else, the processor must have dropped the
  // page before. It has, too, where a large page has been split, or pages have become one: what is
  // walked now it would not have read. A processor makes a clean page dirty itself, with the store
  // that is to come.
  const bool clean = kept != nullptr && !kept->dirty;
  const std::uint32_t marks = met_marks_ & ~(clean ? kDirty : 0u);
  const bool differs =
      kept != nullptr && (marks != 0 || kept->frame != walked.frame || kept->large != walked.large);
  if (differs) tell_dropped_(walked.page << 12);
  Entry its = walked;
  // A store has been made: the page is dirty now, whatever its entry says.
  its.dirty = its.dirty || stored || (kept != nullptr && !differs && kept->dirty);
  insert(its);
  const bool shown_dirty = (*its.shadow & kDirty) != 0;
  if (kept == nullptr || differs)
    kept_.keep(its.page,
               {its.frame, rights_of(its.page << 12), shown_dirty, its.global, its.large});
  else if (shown_dirty)
    kept_.store(its.page);
}

bool PageWalker::translate_for_update(std::uint64_t address, bool user,
                                      std::optional<PhysicalAddress> physical) {
  if (!paging()) return true;
  const std::uint64_t linear = reach(address);
  // The walk is shown with the fault. A dirty page may have become read-only, as fork makes it.
  if (!may_store(linear, user)) return false;
  const Entry* const held = usable(linear >> 12, true);
  if (held != nullptr && (!physical || (held->frame | (linear & 0xfff)) == *physical)) return true;
  const KeptPages::Page* const page = kept_.find(linear >> 12, true);
  // A processor that holds the page makes no walk, unless the emulator has made one.
  const bool sets =
      page == nullptr || was_marked(linear) || locate(linear) != (page->frame | (linear & 0xfff));
  if (const auto walked = walk(linear, sets ? kAccessed | kDirty : 0)) fill(*walked, page, true);
  return true;
}

std::optional<PhysicalAddress> PageWalker::translate(std::uint64_t address, bool store) {
  const std::uint64_t linear = reach(address);
  const std::uint64_t within = linear & 0xfff;
  if (!paging()) return linear & a20_mask_;
  if (const Entry* const held = usable(linear >> 12, store)) return held->frame | within;
  const KeptPages::Page* const page = kept_.find(linear >> 12, store);
  const auto walked = walk(linear);
  if (!walked) return std::nullopt;
  if (page == nullptr || met_marks_ != 0) mark_used(linear, store);
  fill(*walked, page, store);
  return walked->frame | within;
}

std::optional<PhysicalAddress> PageWalker::translate_own_store(std::uint64_t address) {
  const std::uint64_t linear = reach(address);
  if (!paging() || usable(linear >> 12, true) != nullptr ||
      kept_.find(linear >> 12, true) != nullptr)
    return translate(linear, true);
  own_store_ = true;
  auto walked = walk(linear, kDirty);
  own_store_ = false;
  if (!walked) return std::nullopt;
  fill(*walked, nullptr, false);
  return walked->frame | (linear & 0xfff);
}

PhysicalAddress PageWalker::walk_as(std::uint64_t address, bool store, PhysicalAddress physical) {
  const std::uint64_t linear = reach(address);
  // The emulator may hold a page whose table says something else by now.
  if (paging() && find(linear >> 12) == nullptr) {
    const KeptPages::Page* const page = kept_.find(linear >> 12, store);
    if (page != nullptr && (page->frame | (linear & 0xfff)) == physical &&
        locate(linear) != physical)
      return physical;
  }
  auto result = translate(linear, store);
  if (result != physical && paging()) {
    if (Entry* held = find(linear >> 12)) *held = Entry{};
    result = translate(linear, store);
  }
  if (result != physical) ++disagreements_;
  return physical;
}

void PageWalker::faulting_walk(std::uint64_t address) {
  if (!paging()) return;
  const std::uint64_t linear = reach(address);
  if (Entry* held = find(linear >> 12)) *held = Entry{};
  // The emulator has walked: for a processor that holds the page there would be no fault.
  if (const KeptPages::Page* const page = kept_.find(linear >> 12);
      page != nullptr &&
      (page->rights != rights_of(linear) || locate(linear) != (page->frame | (linear & 0xfff))))
    tell_dropped_(linear & ~std::uint64_t{0xfff});
  kept_.drop(linear >> 12);
  faulting_ = true;
  (void)walk(linear);
  faulting_ = false;
}

}  // namespace citcat::monitor
