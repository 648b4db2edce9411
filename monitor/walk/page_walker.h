#pragma once
// The processor's page walks. The emulator does not report its walks, so this class follows with a
// small TLB of its own (32 entries, 4-way, as in the i486) and reports what a walk reads, and the
// accessed and dirty bits it sets. Tables of two and of four levels, and those of PAE. It also
// reports when the emulator finds a new translation of a page that a larger TLB may hold.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "monitor/bus/bus_model.h"
#include "monitor/bus/guest_memory.h"
#include "monitor/state/control_registers.h"
#include "monitor/walk/kept_pages.h"

namespace citcat::monitor {

/// What the TLB holds of a page of 4 KiB. All of it is in one line of the host's cache.
struct alignas(64) HeldPage {
  std::uint64_t page = ~std::uint64_t{0};  ///< linear page number
  PhysicalAddress frame = 0;               ///< physical address of the page
  /// The lowest byte of the table entry that maps it, where marks are: as it is, and as the bus has
  /// shown it.
  const std::uint8_t* live = nullptr;
  const std::uint8_t* shadow = nullptr;
  PageInRam in_ram;
  bool dirty = false, global = false;
  bool large = false;  ///< a piece of a larger page
  // Where the emulator certainly goes there, as long as no tables are stored to: bits for programs
  // at level 3 and for others, the same where they may also store there, and the number of such
  // stores until then.
  std::uint8_t sure_for = 0;
  std::uint32_t sure_at = 0;

  /// The bit of `sure_for`. `may_store`: that the right to store is known, too.
  static constexpr unsigned sure_bit(bool user, bool may_store) {
    return 1u << (int{user} + 2 * int{may_store});
  }
};
static_assert(sizeof(HeldPage) == 64);

/// Linear addresses are of 64 bits; outside long mode the lower 32 count.
class PageWalker {
 public:
  PageWalker(GuestMemory& memory, BusModel& bus) : memory_(memory), bus_(bus) {
    found_.fill(&tlb_[0][0]);
  }
  PageWalker(const PageWalker&) = delete;
  PageWalker& operator=(const PageWalker&) = delete;

  /// New control registers; drops all translations. `loads_cr3`: an instruction wrote CR3, which
  /// makes a processor with PAE read the four page-directory pointers, to keep them.
  void set_control(const ControlRegisters& control, bool loads_cr3);
  std::uint32_t cr0() const { return control_.cr0; }
  std::uint64_t cr3() const { return control_.cr3; }
  /// EFER.LMA: four levels of tables, and linear addresses of 64 bits.
  bool long_mode() const { return (control_.efer & 0x400) != 0; }
  /// The part of a linear address that counts: after the last one of 32 bits comes 0.
  std::uint64_t reach(std::uint64_t linear) const { return linear & reach_; }
  /// How far `linear` lies after `base`, which may be at the end of the address space.
  std::uint64_t behind(std::uint64_t linear, std::uint64_t base) const {
    return reach(linear - base);
  }
  /// The A20 gate: closed, it clears bit 20 of every physical address.
  void set_a20(bool open);
  void flush();
  /// INVLPG drops the page.
  void invalidate(std::uint64_t linear);
  /// `tell` is called with the linear address of a page that a processor must have dropped before
  /// the instruction in flight: the emulator has walked to it again and found something else.
  void set_dropped(std::function<void(std::uint64_t page)> tell) {
    tell_dropped_ = std::move(tell);
  }

  /// The physical address of a linear one. A walk is made, and seen on the bus, when the TLB does
  /// not hold the page or holds it clean for a store. Nullopt where a table says "not present".
  std::optional<PhysicalAddress> translate(std::uint64_t linear, bool store);
  /// The same, for when the emulator says where the access went: a translation that disagrees is
  /// walked again.
  PhysicalAddress translate_as(std::uint64_t linear, bool store, PhysicalAddress physical) {
    return holds(linear, store, physical) ? physical : walk_as(linear, store, physical);
  }
  /// Whether the TLB has a page, and has it there; without paging, whether it is there.
  bool holds(std::uint64_t linear, bool store, PhysicalAddress physical) {
    return held(linear, store, physical) != nullptr;
  }
  /// What it holds then, or nullptr.
  [[gnu::always_inline]] const HeldPage* held(std::uint64_t linear, bool store,
                                              PhysicalAddress physical) {
    const std::uint64_t page = (linear & reach_) >> 12;
    const Entry* found = usable(page, store);
    if (found == nullptr && !paging()) found = insert_unpaged(page);
    return found != nullptr && (found->frame | (linear & 0xfff)) == physical ? found : nullptr;
  }
  /// The same where the emulator need not be asked where it goes. Only RAM that
  /// may be cached is held for sure. `sure`: what HeldPage::sure_for must have.
  [[gnu::always_inline]] const HeldPage* surely_held(std::uint64_t linear, bool store,
                                                     unsigned sure) const {
    const std::uint64_t page = (linear & reach_) >> 12;
    const Entry& found = *found_[page % kFound];
    if (found.page != page || (store && !found.dirty) || (found.sure_for & sure) != sure ||
        found.sure_at != memory_.table_stores() || is_marked_since(found))
      return nullptr;
    return &found;
  }
  /// The emulator has gone to a page as it is held. Finds out whether it will go there again.
  /// `stored`: it has stored there.
  void confirm(std::uint64_t linear, bool user, bool stored);
  /// A load whose instruction is going to store to the same place. A processor walks once, for the
  /// store; the emulator walks for the load first, and sets the accessed bit even when the store
  /// then faults. False when it will fault. `user`: at privilege level 3; `physical`: where the
  /// emulator went, as far as it tells.
  bool translate_for_update(std::uint64_t linear, bool user,
                            std::optional<PhysicalAddress> physical);
  /// The same as translate() for a store that the emulator does not make: the bits that its walk
  /// would set in the tables are set here.
  std::optional<PhysicalAddress> translate_own_store(std::uint64_t linear);
  /// Where a linear address is, without a trace on the bus. Nullopt where a table says "not
  /// present".
  std::optional<PhysicalAddress> locate(std::uint64_t linear) const;
  /// Takes out of RAM again what the emulator has set in a page's entries since the bus showed
  /// them, for an access that a processor does not make.
  void take_back_marks(std::uint64_t linear);
  /// Whether the emulator has walked to the page, and set bits in its entry, since the bus showed
  /// it.
  bool was_marked(std::uint64_t linear) const;
  /// What a walk that ended in a page fault read. It sets no bits: those that the emulator has set,
  /// for a load before the store that faulted, are taken out of RAM again.
  void faulting_walk(std::uint64_t linear);

  /// Page-directory pointers are kept in the processor outside long mode alone.
  bool keeps_pointers() const { return paging() && pae() && !long_mode(); }
  /// The emulator marks page-directory pointers as accessed, in which a processor has no such bit
  /// (Intel SDM vol. 3, table 4-8). Takes these marks out of RAM again.
  void take_back_pointer_marks() {
    if (keeps_pointers()) take_back_kept_marks();
  }

  std::uint64_t walks() const { return walks_; }
  /// Translations that differed from the emulator's even after a new walk.
  std::uint64_t disagreements() const { return disagreements_; }

 private:
  static constexpr unsigned kSets = 8, kWays = 4, kFound = 64;
  static constexpr std::uint32_t kPresent = 1, kWritable = 2, kUser = 4, kLarge = 0x80,
                                 kAccessed = 0x20, kDirty = 0x40;
  static constexpr std::uint64_t kAddress = 0x000ffffffffff000;  ///< in entries of eight bytes
  static constexpr PhysicalAddress kNowhere = 0xfffff000;        ///< no table is in firmware

  using Entry = HeldPage;

  /// The entries that map a page, from the top one on. A large page has fewer.
  struct Path {
    std::array<PhysicalAddress, 4> at{};
    unsigned count = 0;
    std::uint32_t within = 0xfff;  ///< the bits of an address that are within the page
    PhysicalAddress last() const { return at[count - 1]; }
  };

  bool paging() const { return (control_.cr0 & 0x80000000) != 0; }
  bool pae() const { return (control_.cr4 & 0x20) != 0; }
  PhysicalAddress pointers_at() const { return static_cast<std::uint32_t>(control_.cr3) & ~0x1fu; }
  /// The table or page that an entry of eight bytes, or CR3, names.
  static PhysicalAddress named_by(std::uint64_t entry) { return entry & kAddress; }
  /// The page of 4 MiB that an entry of four bytes names: its bits 13 to 20 are bits 32 to 39 of
  /// the address (Intel SDM vol. 3, table 4-4).
  static std::uint64_t large_page(std::uint32_t entry) {
    return (entry & 0xffc00000) | std::uint64_t{entry & 0x1fe000} << 19;
  }
  PhysicalAddress directory_base() const { return named_by(control_.cr3); }
  PhysicalAddress walk_as(std::uint64_t linear, bool store, PhysicalAddress physical);
  Entry* find(std::uint64_t page) {
    Entry*& found = found_[page % kFound];
    if (found->page == page) return found;
    for (Entry& entry : tlb_[page % kSets])
      if (entry.page == page) return found = &entry;
    return nullptr;
  }
  /// The entry that may be used for an access: not one for which the emulator has walked again, as
  /// a smaller TLB than ours makes it. The system may have cleared the accessed bit meanwhile.
  /// A dirty mark that is still to be shown is that of a store: of the one that is being told, or
  /// of one behind what is told now, whose walk the emulator has made already.
  Entry* usable(std::uint64_t page, bool store) {
    Entry* const held = find(page);
    if (held == nullptr || (store && !held->dirty)) return nullptr;
    return is_marked_since(*held, store ? kAccessed | kDirty : kAccessed) ? nullptr : held;
  }
  static bool is_marked_since(const Entry& held, unsigned marks = kAccessed | kDirty) {
    return (*held.live & ~*held.shadow & marks) != 0;
  }
  /// What an entry names.
  enum class Names : std::uint8_t { table, page };
  /// `sets`: bits that the walk is known to set in the last entry.
  std::optional<Entry> walk(std::uint64_t linear, std::uint32_t sets = 0);
  std::optional<Entry> walk_pae(std::uint32_t linear, std::uint32_t sets);
  std::optional<Entry> walk_four_levels(std::uint64_t linear, std::uint32_t sets);
  std::optional<std::uint64_t> read_long_entry(PhysicalAddress address, std::uint32_t sets,
                                               Names names);
  std::optional<std::uint64_t> read_pae_entry(PhysicalAddress address, std::uint32_t sets,
                                              Names names);
  void load_pointers();
  void take_back_kept_marks();
  std::optional<std::uint32_t> read_entry(PhysicalAddress address, std::uint32_t sets = 0,
                                          Names names = Names::page);
  std::optional<std::uint64_t> read_entry_of(PhysicalAddress address, unsigned size,
                                             std::uint32_t sets, Names names);
  std::uint64_t mark(PhysicalAddress address, unsigned size, std::uint32_t bits);
  std::uint32_t peek(PhysicalAddress address) const;
  std::uint64_t peek_wide(PhysicalAddress address) const;
  Entry entry(std::uint64_t page, PhysicalAddress frame, std::uint32_t entry, PhysicalAddress at,
              bool large) const;
  void fill(const Entry& walked, const KeptPages::Page* kept, bool stored);
  std::uint64_t rights_of(std::uint64_t linear) const;
  bool is_large(PhysicalAddress address, std::uint32_t allowed_by) const;
  Path path_of(std::uint64_t linear) const;
  Path four_level_path(std::uint64_t linear) const;
  bool may_store(std::uint64_t linear, bool user) const;
  void mark_used(std::uint64_t linear, bool store);
  void insert(const Entry& entry);
  const Entry* insert_unpaged(std::uint64_t page);

  GuestMemory& memory_;
  BusModel& bus_;
  ControlRegisters control_;
  std::uint64_t reach_ = ~0u;  ///< the bits of a linear address that count
  std::array<std::array<Entry, kWays>, kSets> tlb_;
  std::array<unsigned, kSets> next_{};
  std::array<Entry*, kFound> found_;         ///< where pages were found last, or anywhere in tlb_
  std::array<std::uint64_t, 4> pointers_{};  ///< page-directory pointers, as CR3 was loaded
  std::uint32_t met_marks_ = 0;  ///< bits that the emulator has set and the last walk met
  KeptPages kept_;
  std::function<void(std::uint64_t page)> tell_dropped_ = [](std::uint64_t) {};
  bool faulting_ = false;   ///< the walk sets no bits of its own
  bool own_store_ = false;  ///< the walk sets its bits in RAM, where the emulator makes none
  PhysicalAddress a20_mask_ = ~PhysicalAddress{0};
  std::uint64_t walks_ = 0, disagreements_ = 0;
};

}  // namespace citcat::monitor
