#include "replay/machine/mmu.h"

#include <cstring>

namespace citcat {

namespace {

// Bits of page-table entries (Intel SDM vol. 3, tables 4-4 to 4-6).
constexpr std::uint32_t kPresent = 1, kWritable = 2, kUser = 4, kAccessed = 0x20, kDirty = 0x40,
                        kLarge = 0x80, kGlobal = 0x100;

constexpr std::uint32_t kCr0Wp = 1u << 16, kCr0Nw = 1u << 29, kCr0Cd = 1u << 30, kCr0Pg = 1u << 31;
constexpr unsigned kRegionShift = 22;  ///< of Mmu::large_regions_
constexpr std::uint32_t kCr4Pse = 1u << 4, kCr4Pae = 1u << 5, kCr4Pge = 1u << 7,
                        kCr4Pcide = 1u << 17, kCr4Smep = 1u << 20, kCr4Smap = 1u << 21;
constexpr std::uint64_t kEferLma = 1u << 10, kEferNxe = 1u << 11;

/// In Walk::rights, where entries of eight bytes have their bit 63: no level lets code be fetched.
constexpr std::uint32_t kNoExecute = 1u << 31;
/// The address bits of an eight-byte entry, as many as a processor may have (SDM vol. 3, 4.1.4).
constexpr std::uint64_t kEntryAddress = 0x000ffffffffff000;
constexpr unsigned kAddressBits = 52;

/// Of 4 MiB; regions that 32 bits do not tell apart share a bit.
std::size_t region_of(std::uint64_t linear) {
  return static_cast<std::uint32_t>(linear) >> kRegionShift;
}

}  // namespace

struct Mmu::Walk {
  std::uint32_t frame = 0;   ///< of the 4 KiB page
  std::uint32_t rights = 0;  ///< kWritable and kUser of all levels together
  std::uint32_t leaf = 0;
  bool large = false;
  bool marks = false;  ///< accessed or dirty bits had to be set, or would have to be
  struct Read {
    PhysAddr at;
    std::uint32_t size = 0;
  };
  std::array<Read, 4> reads;  ///< of each level, those that were made
};

Mmu::Mmu(Engine& engine, Memory& memory, const BusModel& bus, WalkObserver& observer, bool one_tlb)
    : engine_(engine),
      memory_(memory),
      bus_(bus),
      observer_(observer),
      code_tlb_(one_tlb ? dtlb_ : itlb_) {}

std::shared_ptr<const Mmu::State> Mmu::save() const {
  return std::make_shared<const State>(State{itlb_, dtlb_, pdptes_});
}

void Mmu::restore(const State& state) {
  (void)take_control(false);
  itlb_ = state.itlb;
  dtlb_ = state.dtlb;
  pdptes_ = state.pdptes;
  ++epoch_;
  for (const std::vector<Entry>* tlb : {&itlb_, &dtlb_}) {
    for (const Entry& e : *tlb) {
      if (e.large) large_regions_.set(region_of(e.tag));
    }
  }
}

void Mmu::flush_all() {
  ++epoch_;
  ++stats_.flushes;
  for (Entry& e : itlb_) e.tag = kInvalid;
  for (Entry& e : dtlb_) e.tag = kInvalid;
  large_regions_.reset();
}

void Mmu::invalidate_page(LinearAddr page) { drop_page(page, context_, true); }

void Mmu::invalidate_page_of(LinearAddr page, std::uint16_t context) {
  drop_page(page, context_tag(context), false);
}

/// INVLPG drops all of a page that the tables map as a large one, in however many pieces it is held
/// (Intel SDM vol. 3, 4.10.4.1). The engine holds pieces too.
void Mmu::drop_page(LinearAddr address, std::uint64_t context, bool global) {
  ++epoch_;
  // A piece of a page of 1 GiB does not tell that it is one: all of that size is dropped.
  const std::uint64_t within = long_mode_ ? 0x3fffffff : pae_ ? 0x1fffff : 0x3fffff;
  constexpr std::uint64_t kInAddress = (std::uint64_t{1} << kContextShift) - 1;
  const std::uint64_t wanted = address.page_begin().value ^ context;
  const auto is_of = [&](const Entry& e, std::uint64_t ignored) {
    const std::uint64_t differing = (e.tag ^ wanted) & ~ignored;
    return differing == 0 || (global && e.global && (differing & kInAddress) == 0);
  };
  for (std::vector<Entry>* tlb : {&itlb_, &dtlb_}) {
    Entry& e = (*tlb)[address.page() & (tlb->size() - 1)];
    if (e.tag != kInvalid && is_of(e, 0)) e.tag = kInvalid;
  }
  if (!large_regions_.test(region_of(address.value))) return;
  drop([&](const Entry& e) { return e.large && is_of(e, within); });
  lose(Access::read);
}

template <class Which>
void Mmu::drop(Which&& which) {
  for (std::vector<Entry>* tlb : {&itlb_, &dtlb_}) {
    for (Entry& e : *tlb) {
      if (e.tag != kInvalid && which(e)) e.tag = kInvalid;
    }
  }
}

void Mmu::invalidate_context(std::uint16_t context) {
  ++epoch_;
  ++stats_.flushes;
  const std::uint64_t wanted = context_tag(context);
  // Bit 52 and those above are alike in an address, as bit 51 is.
  drop([&](const Entry& e) {
    const bool upper = (e.tag >> (kContextShift - 1) & 1) != 0;
    const std::uint64_t own = (upper ? ~std::uint64_t{0} : 0) << kContextShift;
    return !e.global && (e.tag >> kContextShift << kContextShift) == (own ^ wanted);
  });
}

void Mmu::invalidate_contexts() {
  ++epoch_;
  ++stats_.flushes;
  drop([](const Entry& e) { return !e.global; });
}

void Mmu::state_loaded() {
  (void)take_control(true);
  flush_all();
  if (paging_ && pae_ && !long_mode_) load_pdptes(false);
}

void Mmu::control_changed(bool reload_cr3) {
  if (take_control(reload_cr3)) load_pdptes(true);
}

bool Mmu::take_control(bool reload_cr3) {
  const std::uint32_t cr0 = engine_.cr(0), cr4 = engine_.cr(4);
  const bool paging = (cr0 & kCr0Pg) != 0, wp = (cr0 & kCr0Wp) != 0;
  const bool pse = (cr4 & kCr4Pse) != 0, pae = (cr4 & kCr4Pae) != 0, pge = (cr4 & kCr4Pge) != 0;
  const std::uint64_t efer = engine_.efer();
  const bool lma = (efer & kEferLma) != 0, nxe = (efer & kEferNxe) != 0;
  const bool smep = (cr4 & kCr4Smep) != 0, smap = (cr4 & kCr4Smap) != 0;
  const bool contexts = lma && (cr4 & kCr4Pcide) != 0;
  const bool mode_changed = paging != paging_ || wp != write_protect_ || pse != large_pages_ ||
                            pae != pae_ || pge != global_pages_ || lma != long_mode_ ||
                            nxe != no_execute_ || smep != keeps_from_user_ || smap != smap_ ||
                            contexts != contexts_;
  long_mode_ = lma;
  no_execute_ = nxe;
  keeps_from_user_ = smep;
  smap_ = smap;
  contexts_ = contexts;
  paging_ = paging;
  write_protect_ = wp;
  large_pages_ = pse;
  pae_ = pae;
  global_pages_ = pge;
  cr3_ = engine_.cr(3);
  const auto context = static_cast<std::uint16_t>(contexts ? cr3_ & kPageMask : 0);
  context_ = context_tag(context);
  a20_mask_ = engine_.a20_mask();
  ++epoch_;
  // Intel SDM vol. 3, 4.4.1: what makes a MOV to CR0 or CR4 read the page-directory pointers.
  const std::uint32_t of_cr0 = cr0 & (kCr0Pg | kCr0Cd | kCr0Nw);
  const std::uint32_t of_cr4 = cr4 & (kCr4Pae | kCr4Pge | kCr4Pse);
  const bool reads_pointers = reload_cr3 || of_cr0 != pointer_cr0_ || of_cr4 != pointer_cr4_;
  pointer_cr0_ = of_cr0;
  pointer_cr4_ = of_cr4;
  if (mode_changed) {
    flush_all();
  } else if (reload_cr3) {
    // Intel SDM vol. 3, 4.10.4.1: a CR3 load keeps global entries when CR4.PGE is set, and those of
    // other contexts. Without CR4.PGE no entry is global.
    if (contexts) {
      invalidate_context(context);
    } else {
      invalidate_contexts();
    }
  }
  return paging_ && pae_ && !long_mode_ && reads_pointers;
}

void Mmu::load_pdptes(bool told) {
  // Intel SDM vol. 3, 4.4.1: the four entries are read when CR3 is loaded and kept.
  for (unsigned i = 0; i < 4; ++i) {
    const PhysAddr at{(cr3_ & ~0x1fu) + 8 * i};
    pdptes_[i].reset();
    if (!memory_.is_mapped(at.page()) || !memory_.is_defined(at, 8)) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, memory_.host(at), 8);
    if (told) observer_.walk_read(at, 8);
    pdptes_[i] = value;
  }
}

std::vector<PhysAddr> Mmu::page_directories() const {
  std::vector<PhysAddr> directories;
  if (!paging_ || !pae_ || long_mode_) return directories;
  for (const std::optional<std::uint64_t>& entry : pdptes_) {
    if (!entry || (*entry & kPresent) == 0) continue;
    if (const auto place = bus_.held(MachineAddr{*entry & kEntryAddress}))
      directories.push_back(*place);
  }
  return directories;
}

std::uint64_t Mmu::pdpte(LinearAddr address, bool effects) {
  const unsigned index = address.low32() >> 30;
  std::optional<std::uint64_t>& entry = pdptes_[index];
  if (!entry) {
    const PhysAddr at{(cr3_ & ~0x1fu) + 8 * index};
    if (effects) entry = observer_.missing_pdpte(index, address);
    if (!entry) throw UndefinedMemory{at, 8, "page-directory-pointer entry"};
  }
  return *entry;
}

/// Where the table or page is held that the entry at `named_at` names.
PhysAddr Mmu::place_of(MachineAddr address, PhysAddr named_at, const char* beyond) const {
  const bool is_beyond = address.value >> 32 != 0;
  if (bus_.stand_ins == nullptr && !is_beyond) return PhysAddr{address.value};
  if (const auto place = bus_.held(address)) return *place;
  throw UndefinedMemory{named_at, 8,
                        is_beyond ? beyond : "page in whose place another one is held"};
}

std::uint32_t Mmu::read_entry(PhysAddr at) {
  if (!memory_.is_mapped(at.page()) || !memory_.is_defined(at, 4)) {
    throw UndefinedMemory{at, 4, "page-table entry"};
  }
  std::uint32_t value = 0;
  std::memcpy(&value, memory_.host(at), 4);
  return value;
}

void Mmu::write_entry(PhysAddr at, std::uint32_t value) {
  std::memcpy(memory_.host(at), &value, 4);
  // In long mode all of the entry is written (seen on the buses of recorded machines).
  const std::uint32_t size = long_mode_ ? 8 : 4;
  memory_.mark_defined(at, size);
  observer_.walk_write(at, {memory_.host(at), size});
}

void Mmu::fault(LinearAddr address, Access access, Who who, bool present, bool reserved) const {
  // Intel SDM vol. 3, figure 4-12. Instruction fetches are marked with NX or SMEP only.
  const bool fetch = access == Access::execute && ((no_execute_ && pae_) || keeps_from_user_);
  throw PageFault{address, (present ? 1u : 0u) | (access == Access::write ? 2u : 0u) |
                               (who == Who::user ? 4u : 0u) | (reserved ? 8u : 0u) |
                               (fetch ? 16u : 0u)};
}

bool Mmu::permitted(std::uint32_t rights, Access access, Who who) const {
  const bool user = who == Who::user;
  if (user && (rights & kUser) == 0) return false;
  if (access == Access::execute) return may_execute(rights, user);
  if (smap_ && who == Who::processor && (rights & kUser) != 0) return false;
  if (access != Access::write || (rights & kWritable) != 0) return true;
  return !user && !write_protect_;
}

/// True where code of a page that `user` may read may also be executed.
bool Mmu::may_execute(std::uint32_t rights, bool user) const {
  if ((rights & kNoExecute) != 0) return false;
  return user || !keeps_from_user_ || (rights & kUser) == 0;
}

std::uint8_t Mmu::rights_to_allowed(std::uint32_t rights, bool dirty, Access access) const {
  if (access == Access::execute) {
    // In a TLB of code to read is to execute; what has a TLB for both has no such rights.
    std::uint8_t executed = 0;
    if (permitted(rights, access, Who::processor)) executed |= kSupervisorRead;
    if (permitted(rights, access, Who::user)) executed |= kUserRead;
    if (&code_tlb_ != &dtlb_) return executed;
  }
  std::uint8_t allowed = 0;
  if (permitted(rights, Access::read, Who::processor)) allowed |= kSupervisorRead;
  if (smap_) allowed |= kOverrideRead;
  if ((rights & kUser) != 0) allowed |= kUserRead;
  // A write to a clean page walks again, to set the dirty bit.
  if (dirty) {
    if (permitted(rights, Access::write, Who::processor)) allowed |= kSupervisorWrite;
    if (smap_ && permitted(rights, Access::write, Who::override)) allowed |= kOverrideWrite;
    if (permitted(rights, Access::write, Who::user)) allowed |= kUserWrite;
  }
  return allowed;
}

Mmu::Walk Mmu::walk(LinearAddr address, Access access, Who who, bool effects) {
  if (long_mode_) return walk_four_level({address, access, who, effects});
  return pae_ ? walk_pae(address, access, who, effects)
              : walk_two_level(address, access, who, effects);
}

void Mmu::read_noted(Walk& walk, PhysAddr at, std::uint32_t size, bool effects) {
  if (effects) observer_.walk_read(at, size);
  for (Walk::Read& read : walk.reads) {
    if (read.size != 0) continue;
    read = {at, size};
    return;
  }
}

void Mmu::finish_walk(Walk& walk, const WalkRequest& want, std::uint32_t rights, PhysAddr leaf_at,
                      std::uint32_t leaf) {
  walk.rights = rights & (kWritable | kUser | (long_mode_ ? kNoExecute : 0));
  if (!permitted(walk.rights, want.access, want.who)) {
    fault(want.address, want.access, want.who, true);
  }
  const std::uint32_t updated = leaf | kAccessed | (want.access == Access::write ? kDirty : 0);
  walk.marks = updated != leaf;
  if (want.effects && walk.marks) write_entry(leaf_at, updated);
  walk.leaf = want.effects ? updated : leaf;
}

void Mmu::finish_table_walk(Walk& walk, const WalkRequest& want, PhysAddr pde_at, std::uint32_t pde,
                            PhysAddr pte_at, std::uint32_t pte) {
  const std::uint32_t rights = pde & pte & (kWritable | kUser);
  // The directory entry is marked first, but not for an access that is refused.
  if (want.effects && (pde & kAccessed) == 0 && permitted(rights, want.access, want.who)) {
    write_entry(pde_at, pde | kAccessed);
  }
  finish_walk(walk, want, rights, pte_at, pte);
  walk.marks |= (pde & kAccessed) == 0;
}

Mmu::Walk Mmu::walk_two_level(LinearAddr address, Access access, Who who, bool effects) {
  Walk walk;
  const PhysAddr pde_at{(cr3_ & ~kPageMask) + (address.low32() >> 22 << 2)};
  const std::uint32_t pde = read_entry(pde_at);
  read_noted(walk, pde_at, 4, effects);
  if ((pde & kPresent) == 0) fault(address, access, who, false);
  if ((pde & kLarge) != 0 && large_pages_) {
    finish_walk(walk, {address, access, who, effects}, pde, pde_at, pde);
    // Bits 13 to 20 are bits 32 to 39 of the address (SDM vol. 3, table 4-4).
    const std::uint64_t page =
        (pde & 0xffc00000) | std::uint64_t{pde & 0x001fe000} << 19 | (address.low32() & 0x003ff000);
    walk.frame = place_of(MachineAddr{page}, pde_at, "page beyond 4 GiB").u32();
    walk.large = true;
    return walk;
  }
  const PhysAddr pte_at{(pde & ~kPageMask) + (address.low32() >> 10 & 0xffc)};
  const std::uint32_t pte = read_entry(pte_at);
  read_noted(walk, pte_at, 4, effects);
  if ((pte & kPresent) == 0) fault(address, access, who, false);
  finish_table_walk(walk, {address, access, who, effects}, pde_at, pde, pte_at, pte);
  walk.frame = pte & ~kPageMask;
  return walk;
}

Mmu::Walk Mmu::walk_pae(LinearAddr address, Access access, Who who, bool effects) {
  Walk walk;
  const std::uint64_t pointer = pdpte(address, effects);
  if ((pointer & kPresent) == 0) fault(address, access, who, false);
  const auto read = [&](PhysAddr at) {
    std::uint64_t entry = read_entry(at);
    if ((entry & kPresent) != 0) entry |= std::uint64_t{read_entry(at.plus32(4))} << 32;
    // Such as no-execute, which is carried out in long mode alone.
    if ((entry & kPresent) != 0 && entry >> kAddressBits != 0)
      throw UndefinedMemory{at, 8, "page-table entry with bits above its address"};
    read_noted(walk, at, 8, effects);
    return entry;
  };
  constexpr std::uint32_t kLargePage = 0x1fffff;
  const PhysAddr pointer_at{(cr3_ & ~0x1fu) + 8 * (address.low32() >> 30)};
  const PhysAddr directory =
      place_of(MachineAddr{pointer & kEntryAddress}, pointer_at, "page directory beyond 4 GiB");
  const PhysAddr pde_at = directory.plus32(address.low32() >> 18 & 0xff8);
  const std::uint64_t pde = read(pde_at);
  const auto low_pde = static_cast<std::uint32_t>(pde);
  if ((pde & kPresent) == 0) fault(address, access, who, false);
  if ((pde & kLarge) != 0) {
    finish_walk(walk, {address, access, who, effects}, low_pde, pde_at, low_pde);
    const std::uint64_t page = (pde & kEntryAddress & ~std::uint64_t{kLargePage}) |
                               (address.page_begin().low32() & kLargePage);
    walk.frame = place_of(MachineAddr{page}, pde_at, "page beyond 4 GiB").u32();
    walk.large = true;
    return walk;
  }
  const PhysAddr table =
      place_of(MachineAddr{pde & kEntryAddress}, pde_at, "page table beyond 4 GiB");
  const PhysAddr pte_at = table.plus32(address.low32() >> 9 & 0xff8);
  const std::uint64_t pte = read(pte_at);
  if ((pte & kPresent) == 0) fault(address, access, who, false);
  finish_table_walk(walk, {address, access, who, effects}, pde_at, low_pde, pte_at,
                    static_cast<std::uint32_t>(pte));
  walk.frame = place_of(MachineAddr{pte & kEntryAddress}, pte_at, "page beyond 4 GiB").u32();
  return walk;
}

void Mmu::set_limits(unsigned physical_bits, bool gigabyte_pages) {
  const std::uint64_t address =
      (std::uint64_t{1} << std::min(physical_bits, kMostPhysicalBits)) - 1;
  reserved_bits_ = kEntryAddress & ~address;
  gigabyte_pages_ = gigabyte_pages;
}

std::uint64_t Mmu::read_wide_entry(PhysAddr at) {
  return read_entry(at) | std::uint64_t{read_entry(at.plus32(4))} << 32;
}

/// Intel SDM vol. 3, 4.5: four levels of 512 entries each; at the second and third a page may take
/// a table's place.
Mmu::Walk Mmu::walk_four_level(const WalkRequest& want) {
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
    read_noted(walk, at[level], 8, want.effects);
    if ((entry & kPresent) == 0) fault(want.address, want.access, want.who, false);
    const bool page = level == kLevels - 1 || ((entry & kLarge) != 0 && level != 0);
    refuse_reserved(want, entry, page ? shift : 0, level);
    rights &= static_cast<std::uint32_t>(entry) | kNoExecute;
    if (no_execute_ && entry >> 63 != 0) rights |= kNoExecute;
    if (page) break;
    table = place_of(MachineAddr{entry & kEntryAddress}, at[level], "page table beyond 4 GiB");
  }
  // Every level is marked, but not for an access that is refused.
  if (!permitted(rights, want.access, want.who)) {
    fault(want.address, want.access, want.who, true);
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
  walk.frame = place_of(MachineAddr{frame}, at[level], "page beyond 4 GiB").u32();
  walk.large = shift != kPageBits;
  return walk;
}

/// Intel SDM vol. 3, 4.5.4: what must be 0 in a present entry. `page_shift`: of the page it maps, 0
/// where it names a table.
void Mmu::refuse_reserved(const WalkRequest& want, std::uint64_t entry, unsigned page_shift,
                          unsigned level) const {
  constexpr unsigned kPatBit = 12, kSmallPage = 12, kGigabyte = 30;
  bool reserved = (!no_execute_ && entry >> 63 != 0) || (entry & reserved_bits_) != 0;
  if (level == 0) reserved |= (entry & kLarge) != 0;
  if (page_shift == kGigabyte && !gigabyte_pages_) reserved = true;
  if (page_shift > kSmallPage) {
    const std::uint64_t below = (std::uint64_t{1} << page_shift) - (std::uint64_t{2} << kPatBit);
    reserved |= (entry & below) != 0;
  }
  if (reserved) fault(want.address, want.access, want.who, true, true);
}

PhysAddr Mmu::walk_and_fill(Entry& entry, LinearAddr address, Access access, Who who) {
  ++stats_.walks;
  Walk result;
  try {
    result = walk(address, access, who, true);
  } catch (const PageFault&) {
    // Intel SDM vol. 3, 4.10.4.1: a page fault drops the cached translations of its page.
    for (const Access a : {Access::execute, Access::read}) {
      Entry& cached = entry_of(address, a);
      if (cached.tag != tag(address)) continue;
      cached.tag = kInvalid;
      lose(a);
    }
    throw;
  }
  fill(entry, address, result, access, who);
  observer_.mapping_used(address.page_begin(), PhysAddr{result.frame});
  return PhysAddr{(result.frame | address.offset_in_page()) & a20_mask_};
}

void Mmu::fill(Entry& entry, LinearAddr address, const Walk& walk, Access access, Who who) {
  const Entry before = entry;
  entry.tag = tag(address);
  entry.frame = walk.frame;
  entry.allowed = rights_to_allowed(walk.rights, (walk.leaf & kDirty) != 0, access);
  if (policy_ == WalkPolicy::rights_as_used) {
    constexpr unsigned kReads = kSupervisorRead | kUserRead | kOverrideRead;
    constexpr unsigned kOfUser = kUserRead | kUserWrite;
    if (access != Access::write) entry.allowed &= kReads;
    if (who != Who::user) entry.allowed &= static_cast<std::uint8_t>(~kOfUser);
  }
  entry.global = global_pages_ && (walk.leaf & kGlobal) != 0;
  entry.large = walk.large;
  if (walk.large) large_regions_.set(region_of(address.value));
  const bool evicts = before.tag != kInvalid && before.tag != entry.tag;
  const bool moves = before.frame != entry.frame;
  if (evicts || moves) ++epoch_;
  const bool forbids = (before.allowed & ~entry.allowed) != 0;
  if (evicts || (before.tag == entry.tag && (moves || forbids))) lose(access);
}

/// What an entry for `access` said is no longer so.
void Mmu::lose(Access access) {
  const bool one_tlb = &code_tlb_ == &dtlb_;
  observer_.mapping_evicted(one_tlb ? Access::read : access);
}

bool Mmu::fill_quietly(Entry& entry, LinearAddr address, Access access, Who who) {
  ++stats_.walks;
  ++stats_.quiet_walks;
  try {
    const Walk result = walk(address, access, who, false);
    if (result.marks) return false;
    fill(entry, address, result, access, who);
    for (const Walk::Read& read : result.reads) {
      if (read.size != 0) observer_.quiet_walk_read(read.at, read.size);
    }
    return true;
  } catch (const PageFault&) {
    return false;
  } catch (const UndefinedMemory&) {
    return false;
  }
}

std::optional<Translation> Mmu::peek_for(LinearAddr address, Access access, Who who) {
  if (!paging_) return unpaged(address);
  const std::uint8_t need = needed(access, who);
  const std::uint8_t to_write = needed(Access::write, who);
  if (auto known = held_for(address, access, who)) return known;
  try {
    const Walk result = walk(address, access, who, false);
    const std::uint8_t allowed =
        rights_to_allowed(result.rights, (result.leaf & kDirty) != 0, access);
    if ((allowed & need) != need) return std::nullopt;
    return Translation{PhysAddr{result.frame & a20_mask_}, (allowed & to_write) == to_write};
  } catch (const PageFault&) {
    return std::nullopt;
  } catch (const UndefinedMemory&) {
    return std::nullopt;
  }
}

}  // namespace citcat
