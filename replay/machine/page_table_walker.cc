#include "replay/machine/page_table_walker.h"

#include <algorithm>
#include <cstring>

namespace citcat {

namespace {

// Bits of page-table entries (Intel SDM vol. 3, tables 4-4 to 4-6).
constexpr std::uint32_t kPresent = 1, kWritable = 2, kUser = 4, kAccessed = 0x20, kLarge = 0x80;

/// In Walk::rights, where entries of eight bytes have their bit 63: no level lets code be fetched.
constexpr std::uint32_t kNoExecute = 1u << 31;
/// The address bits of an eight-byte entry, as many as a processor may have (SDM vol. 3, 4.1.4).
constexpr std::uint64_t kEntryAddress = 0x000ffffffffff000;

}  // namespace

PagingMode PagingMode::of(std::uint32_t cr0, std::uint32_t cr4, std::uint64_t efer) {
  const auto bit = [](std::uint64_t value, unsigned number) { return (value >> number & 1) != 0; };
  PagingMode mode;
  mode.paging = bit(cr0, 31);
  mode.write_protect = bit(cr0, 16);
  mode.large_pages = bit(cr4, 4);
  mode.pae = bit(cr4, 5);
  mode.global_pages = bit(cr4, 7);
  mode.long_mode = bit(efer, 10);
  mode.no_execute = bit(efer, 11);
  mode.keeps_from_user = bit(cr4, 20);
  mode.smap = bit(cr4, 21);
  mode.contexts = mode.long_mode && bit(cr4, 17);
  return mode;
}

void PageTableWalker::set_limits(const Limits& limits) {
  limits_ = limits;
  const std::uint64_t address =
      (std::uint64_t{1} << std::min(limits.physical_bits, kAddressBits)) - 1;
  reserved_bits_ = kEntryAddress & ~address;
}

void PageTableWalker::load_pointers(bool told) {
  // Intel SDM vol. 3, 4.4.1: the four entries are read when CR3 is loaded and kept.
  for (unsigned i = 0; i < 4; ++i) {
    const PhysAddr at = pointer_at(i);
    pointers_[i].reset();
    if (!memory_.is_mapped(at.page()) || !memory_.is_defined(at, 8)) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, memory_.host(at), 8);
    if (told) observer_.walk_read(at, 8);
    pointers_[i] = value;
  }
}

std::vector<PhysAddr> PageTableWalker::page_directories() const {
  std::vector<PhysAddr> directories;
  if (!mode_.has_pointers()) return directories;
  for (const std::optional<std::uint64_t>& entry : pointers_) {
    if (!entry || (*entry & kPresent) == 0) continue;
    directories.push_back(PhysAddr{*entry & kEntryAddress});
  }
  return directories;
}

std::uint64_t PageTableWalker::pointer(const Request& want) {
  const unsigned index = want.address.low32() >> 30;
  std::optional<std::uint64_t>& entry = pointers_[index];
  if (entry) return *entry;
  if (want.effects) entry = observer_.missing_pdpte(index, want.address);
  if (!entry) throw UndefinedMemory{pointer_at(index), 8, "page-directory-pointer entry"};
  return *entry;
}

std::uint32_t PageTableWalker::read_entry(PhysAddr at) {
  if (!memory_.is_mapped(at.page()) || !memory_.is_defined(at, 4)) {
    throw UndefinedMemory{at, 4, "page-table entry"};
  }
  std::uint32_t value = 0;
  std::memcpy(&value, memory_.host(at), 4);
  return value;
}

void PageTableWalker::write_entry(PhysAddr at, std::uint32_t value) {
  std::memcpy(memory_.host(at), &value, 4);
  // In long mode all of the entry is written (seen on the buses of recorded machines).
  const std::uint32_t size = mode_.long_mode ? 8 : 4;
  memory_.mark_defined(at, size);
  observer_.walk_write(at, {memory_.host(at), size});
}

std::uint64_t PageTableWalker::read_wide_entry(PhysAddr at) {
  return read_entry(at) | std::uint64_t{read_entry(at.plus32(4))} << 32;
}

void PageTableWalker::fault(const Request& want, bool present, bool reserved) const {
  // Intel SDM vol. 3, figure 4-12. Instruction fetches are marked with NX or SMEP only.
  const bool fetch =
      want.access == Access::execute && ((mode_.no_execute && mode_.pae) || mode_.keeps_from_user);
  const bool write = want.access == Access::write, user = want.rights == Rights::user;
  if (reserved && limits_.is_emulated) present = false;
  throw PageFault{want.address, (present ? 1u : 0u) | (write ? 2u : 0u) | (user ? 4u : 0u) |
                                    (reserved ? 8u : 0u) | (fetch ? 16u : 0u)};
}

bool PageTableWalker::permitted(std::uint32_t page, Access access, Rights rights) const {
  const bool user = rights == Rights::user, of_user = (page & kUser) != 0;
  if (user && !of_user) return false;
  if (access == Access::execute) {
    if ((page & kNoExecute) != 0) return false;
    return user || !mode_.keeps_from_user || !of_user;
  }
  if (mode_.smap && rights == Rights::supervisor && of_user) return false;
  if (access != Access::write || (page & kWritable) != 0) return true;
  return !user && !mode_.write_protect;
}

PageTableWalker::Walk PageTableWalker::walk(const Request& want) {
  if (mode_.long_mode) return walk_four_level(want);
  return mode_.pae ? walk_pae(want) : walk_two_level(want);
}

void PageTableWalker::note_read(Walk& walk, PhysAddr at, std::uint32_t size, bool effects) {
  if (effects) observer_.walk_read(at, size);
  for (Walk::Read& read : walk.reads) {
    if (read.size != 0) continue;
    read = {at, size};
    return;
  }
}

void PageTableWalker::finish_walk(Walk& walk, const Request& want, std::uint32_t rights,
                                  PhysAddr leaf_at, std::uint32_t leaf) {
  walk.rights = rights & (kWritable | kUser | kNoExecute);
  if (!permitted(walk.rights, want.access, want.rights)) {
    fault(want, true);
  }
  const std::uint32_t updated = leaf | kAccessed | (want.access == Access::write ? kPageDirty : 0);
  walk.marks = updated != leaf;
  if (want.effects && walk.marks) write_entry(leaf_at, updated);
  walk.leaf = want.effects ? updated : leaf;
}

void PageTableWalker::finish_table_walk(Walk& walk, const Request& want, std::uint32_t rights,
                                        PhysAddr pde_at, std::uint32_t pde, PhysAddr pte_at,
                                        std::uint32_t pte) {
  // The directory entry is marked first, but not for an access that is refused.
  if (want.effects && (pde & kAccessed) == 0 && permitted(rights, want.access, want.rights)) {
    write_entry(pde_at, pde | kAccessed);
  }
  // A directory that names itself has one entry for both levels.
  finish_walk(walk, want, rights, pte_at, pte_at == pde_at ? pte | kAccessed : pte);
  walk.marks |= (pde & kAccessed) == 0;
}

PageTableWalker::Walk PageTableWalker::walk_two_level(const Request& want) {
  Walk walk;
  const PhysAddr pde_at{PhysAddr{cr3_}.page_begin().value + (want.address.low32() >> 22 << 2)};
  const std::uint32_t pde = read_entry(pde_at);
  note_read(walk, pde_at, 4, want.effects);
  if ((pde & kPresent) == 0) fault(want, false);
  if ((pde & kLarge) != 0 && mode_.large_pages) {
    finish_walk(walk, want, pde & (kWritable | kUser), pde_at, pde);
    // Bits 13 to 20 are bits 32 to 39 of the address (SDM vol. 3, table 4-4).
    const std::uint64_t page = (pde & 0xffc00000) | std::uint64_t{pde & 0x001fe000} << 19 |
                               (want.address.low32() & 0x003ff000);
    walk.frame = page;
    walk.large = true;
    return walk;
  }
  const PhysAddr pte_at{(pde & ~kPageMask) + (want.address.low32() >> 10 & 0xffc)};
  const std::uint32_t pte = read_entry(pte_at);
  note_read(walk, pte_at, 4, want.effects);
  if ((pte & kPresent) == 0) fault(want, false);
  finish_table_walk(walk, want, pde & pte & (kWritable | kUser), pde_at, pde, pte_at, pte);
  walk.frame = pte & ~kPageMask;
  return walk;
}

std::uint64_t PageTableWalker::read_pae_entry(Walk& walk, PhysAddr at, bool effects) {
  std::uint64_t entry = read_entry(at);
  if ((entry & kPresent) != 0) entry |= std::uint64_t{read_entry(at.plus32(4))} << 32;
  note_read(walk, at, 8, effects);
  return entry;
}

/// The rights that an entry of eight bytes gives, as Walk::rights has them.
std::uint32_t PageTableWalker::rights_of(std::uint64_t entry) const {
  const bool no_execute = mode_.no_execute && entry >> 63 != 0;
  return (static_cast<std::uint32_t>(entry) & (kWritable | kUser)) | (no_execute ? kNoExecute : 0);
}

PageTableWalker::Walk PageTableWalker::walk_pae(const Request& want) {
  Walk walk;
  const std::uint64_t directory_pointer = pointer(want);
  if ((directory_pointer & kPresent) == 0) fault(want, false);
  constexpr unsigned kLargeShift = 21;
  constexpr std::uint32_t kLargePage = (1u << kLargeShift) - 1;
  const PhysAddr directory = PhysAddr{directory_pointer & kEntryAddress};
  const PhysAddr pde_at = directory.plus32(want.address.low32() >> 18 & 0xff8);
  const std::uint64_t pde = read_pae_entry(walk, pde_at, want.effects);
  const auto low_pde = static_cast<std::uint32_t>(pde);
  if ((pde & kPresent) == 0) fault(want, false);
  refuse_reserved_pae(want, pde, (pde & kLarge) != 0 ? kLargeShift : 0);
  if ((pde & kLarge) != 0) {
    finish_walk(walk, want, rights_of(pde), pde_at, low_pde);
    const std::uint64_t page = (pde & kEntryAddress & ~std::uint64_t{kLargePage}) |
                               (want.address.page_begin().low32() & kLargePage);
    walk.frame = page;
    walk.large = true;
    return walk;
  }
  const PhysAddr table = PhysAddr{pde & kEntryAddress};
  const PhysAddr pte_at = table.plus32(want.address.low32() >> 9 & 0xff8);
  const std::uint64_t pte = read_pae_entry(walk, pte_at, want.effects);
  if ((pte & kPresent) == 0) fault(want, false);
  refuse_reserved_pae(want, pte, 0);
  const std::uint32_t of_table = rights_of(pde), of_page = rights_of(pte);
  const std::uint32_t rights =
      (of_table & of_page & (kWritable | kUser)) | ((of_table | of_page) & kNoExecute);
  finish_table_walk(walk, want, rights, pde_at, low_pde, pte_at, static_cast<std::uint32_t>(pte));
  walk.frame = pte & kEntryAddress;
  return walk;
}

/// Intel SDM vol. 3, 4.5: four levels of 512 entries each; at the second and third a page may take
/// a table's place.
PageTableWalker::Walk PageTableWalker::walk_four_level(const Request& want) {
  Walk walk;
  constexpr unsigned kLevels = 4, kIndexBits = 9, kPageBits = 12;
  std::array<std::uint64_t, kLevels> entries{};
  std::array<PhysAddr, kLevels> at;
  PhysAddr table{cr3_};
  std::uint32_t rights = kWritable | kUser;
  unsigned level = 0, shift = kPageBits + kIndexBits * kLevels;
  for (;; ++level) {
    shift -= kIndexBits;
    const auto index = static_cast<std::uint32_t>(want.address.value >> shift & 0x1ff);
    at[level] = table.page_begin().plus32(8 * index);
    const std::uint64_t entry = entries[level] = read_wide_entry(at[level]);
    note_read(walk, at[level], 8, want.effects);
    if ((entry & kPresent) == 0) fault(want, false);
    const bool page = level == kLevels - 1 || ((entry & kLarge) != 0 && level != 0);
    refuse_reserved(want, entry, page ? shift : 0, level);
    const std::uint32_t its = rights_of(entry);
    rights = (rights & (its | kNoExecute)) | (its & kNoExecute);
    if (page) break;
    table = PhysAddr{entry & kEntryAddress};
  }
  // Every level is marked, but not for an access that is refused. A table that names itself has one
  // entry for several levels.
  if (!permitted(rights, want.access, want.rights)) {
    fault(want, true);
  }
  for (unsigned i = 1; i <= level; ++i) {
    if (std::find(at.begin(), at.begin() + i, at[i]) != at.begin() + i) entries[i] |= kAccessed;
  }
  for (unsigned i = 0; i < level; ++i) {
    if ((entries[i] & kAccessed) != 0) continue;
    walk.marks = true;
    if (want.effects) write_entry(at[i], static_cast<std::uint32_t>(entries[i]) | kAccessed);
  }
  const bool marked = walk.marks;
  finish_walk(walk, want, rights, at[level], static_cast<std::uint32_t>(entries[level]));
  walk.marks |= marked;
  const std::uint64_t within = (std::uint64_t{1} << shift) - 1;
  const std::uint64_t frame =
      (entries[level] & kEntryAddress & ~within) | (want.address.page_begin().value & within);
  walk.frame = frame;
  walk.large = shift != kPageBits;
  return walk;
}

/// Intel SDM vol. 3, 4.5.4: what must be 0 in a present entry. `page_shift`: of the page it maps, 0
/// where it names a table.
void PageTableWalker::refuse_reserved(const Request& want, std::uint64_t entry, unsigned page_shift,
                                      unsigned level) const {
  constexpr unsigned kPatBit = 12, kSmallPage = 12, kGigabyte = 30;
  bool reserved = (!mode_.no_execute && entry >> 63 != 0) || (entry & reserved_bits_) != 0;
  if (level == 0) reserved |= (entry & kLarge) != 0;
  if (page_shift == kGigabyte && !limits_.gigabyte_pages) reserved = true;
  if (page_shift > kSmallPage) {
    const std::uint64_t below = (std::uint64_t{1} << page_shift) - (std::uint64_t{2} << kPatBit);
    reserved |= (entry & below) != 0;
  }
  if (reserved) fault(want, true, true);
}

/// The same of PAE's tables outside long mode, whose entries have no bits for software above the
/// address (SDM vol. 3, tables 4-9 to 4-11).
void PageTableWalker::refuse_reserved_pae(const Request& want, std::uint64_t entry,
                                          unsigned page_shift) const {
  constexpr std::uint64_t kAboveAddress = 0x7ff0'0000'0000'0000;
  if ((entry & kAboveAddress) != 0) fault(want, true, true);
  constexpr unsigned kDirectoryLevel = 1;
  refuse_reserved(want, entry, page_shift, kDirectoryLevel);
}

}  // namespace citcat
