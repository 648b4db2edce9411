#pragma once
// Address translation as the captured processor does it: page walks with accessed and dirty bits
// (Intel SDM vol. 3, chapter 4) and a TLB that keeps global pages over a CR3 load.
//
// The engine has a page walker of its own, but it cannot be observed, it drops global pages at
// every CR3 load, and it sets an accessed bit before it refuses a write. So the engine calls this
// class, and the processor's walks happen before the engine touches memory.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "replay/engine/engine.h"
#include "replay/machine/page_table_walker.h"
#include "replay/machine/tlb.h"

namespace citcat {

/// The effects that looking an address up may have.
enum class Lookup : std::uint8_t {
  held,   ///< nothing: the TLB alone is asked, and only for what it holds and needs no mark
  free,   ///< nothing: page tables are read without a trace
  quiet,  ///< fill a TLB entry, where the walk sets no bit in page tables
};

class Mmu {
 public:
  /// `one_tlb`: code and data share its entries. All others must outlive the object.
  Mmu(Engine& engine, Memory& memory, WalkObserver& observer, bool one_tlb)
      : engine_(engine), observer_(observer), walker_(memory, observer), tlb_(one_tlb) {}

  /// PageTableWalker::set_limits().
  void set_limits(const PageTableWalker::Limits& limits) { walker_.set_limits(limits); }

  /// Takes the paging mode over from the engine's CR0, CR3, CR4. `reload_cr3`: CR3 was written, and
  /// the TLB is to lose what that drops.
  void control_changed(bool reload_cr3);
  /// The same for registers that no instruction has written: the observer is notified of nothing
  /// that is read, and the TLB is empty.
  void state_loaded();
  /// Drops everything, as a TLB flush including global pages does.
  void flush_all();
  void invalidate_page(LinearAddr page);
  /// Drops what the TLB holds of these 4 KiB, as a processor may at any time.
  void drop(LinearAddr page);
  /// INVPCID (Intel SDM vol. 2): of a page, of a context, of all contexts. Without global pages.
  void invalidate_page_of(LinearAddr page, std::uint16_t context);
  void invalidate_context(std::uint16_t context);
  void invalidate_contexts();

  /// Translates one byte's address, with all that the processor does for it. Throws PageFault, or
  /// UndefinedMemory.
  PhysAddr translate(LinearAddr address, Access access, Who who) {
    if (!mode_.paging) [[unlikely]]
      return PhysAddr{address.low32() & a20_mask_};
    const Rights rights = rights_of(who);
    Tlb::Entry& entry = tlb_.entry_of(address, access);
    if (allows(entry, address, access, rights)) [[likely]] {
      return PhysAddr{(entry.frame | address.offset_in_page()) & a20_mask_};
    }
    return walk_and_fill(entry, {address, access, rights, true});
  }

  /// The page of an address, as far as `how` finds it: nullopt where translate() would fault, or
  /// needs memory that no evidence defines, and where `how` may not do what it would take. Writable
  /// where a write would find it so too; after Lookup::quiet what it was looked up for.
  std::optional<Translation> look_up(LinearAddr address, Access access, Who who, Lookup how) {
    if (!mode_.paging) return Translation{PhysAddr{address.page_begin().low32() & a20_mask_}, true};
    const Rights rights = rights_of(who);
    Tlb::Entry& entry = tlb_.entry_of(address, access);
    if (allows(entry, address, access, rights)) {
      const bool writable = how == Lookup::quiet
                                ? access == Access::write
                                : has(entry.allowed, needed(Access::write, rights));
      return Translation{PhysAddr{entry.frame & a20_mask_}, writable};
    }
    if (how == Lookup::held) return std::nullopt;
    const PageTableWalker::Request want{address, access, rights, false};
    return how == Lookup::quiet ? fill_quietly(entry, want) : walk_freely(want);
  }

  /// The program reaches pages of users with supervisor rights though CR4.SMAP is set: EFLAGS.AC.
  bool overrides_smap() const { return mode_.smap && (engine_.system_flags() & kFlagAc) != 0; }

  /// What the TLB and the page-directory-pointer registers hold; part of a checkpoint, because
  /// entries may outlive what memory says.
  struct State {
    std::vector<Tlb::Entry> itlb, dtlb;  ///< Tlb::kCodeEntries and kDataEntries of them
    PageTableWalker::Pointers pdptes;
  };
  std::shared_ptr<const State> save() const;
  void restore(const State& state);

  const Tlb& tlb() const { return tlb_; }

  /// Changes whenever a page may have come to lie elsewhere.
  std::uint32_t epoch() const { return epoch_; }

  /// Counted since it was made.
  struct Stats {
    std::uint64_t walks = 0;        ///< to fill an entry
    std::uint64_t quiet_walks = 0;  ///< of these, those of Lookup::quiet
    std::uint64_t flushes = 0;      ///< whole or but for global pages
  };
  const Stats& stats() const { return stats_; }

  bool paging() const { return mode_.paging; }
  /// PageTableWalker::page_directories().
  std::vector<PhysAddr> page_directories() const { return walker_.page_directories(); }
  void set_walk_policy(WalkPolicy policy) { policy_ = policy; }
  void set_a20_mask(std::uint32_t mask) {
    a20_mask_ = PhysicalSpace::kBeyond32 | mask;
    ++epoch_;
  }

 private:
  using Rights = PageTableWalker::Rights;
  // Tlb::Entry::allowed.
  enum : std::uint8_t {
    kSupervisorRead = 1,
    kSupervisorWrite = 2,
    kUserRead = 4,
    kUserWrite = 8,
    kOverrideRead = 16,
    kOverrideWrite = 32,
  };
  static constexpr std::uint32_t kFlagAc = 1u << 18;

  Rights rights_of(Who who) const {
    if (who == Who::user) return Rights::user;
    if (!mode_.smap || who == Who::processor) return Rights::supervisor;
    return who == Who::anybody || overrides_smap() ? Rights::override : Rights::supervisor;
  }
  static std::uint8_t needed(Access access, Rights rights) {
    if (rights == Rights::user) return access == Access::write ? kUserWrite : kUserRead;
    if (rights == Rights::supervisor || access == Access::execute) {
      return access == Access::write ? kSupervisorWrite : kSupervisorRead;
    }
    return access == Access::write ? kOverrideWrite : kOverrideRead;
  }
  static bool has(std::uint8_t allowed, std::uint8_t need) { return (allowed & need) == need; }
  bool allows(const Tlb::Entry& entry, LinearAddr address, Access access, Rights rights) const {
    return entry.tag == tlb_.tag(address) && has(entry.allowed, needed(access, rights));
  }
  std::uint8_t allowed_by(const PageTableWalker::Walk& walk, Access access) const;
  PhysAddr walk_and_fill(Tlb::Entry& entry, const PageTableWalker::Request& want);
  std::optional<Translation> walk_freely(const PageTableWalker::Request& want);
  std::optional<Translation> fill_quietly(Tlb::Entry& entry, const PageTableWalker::Request& want);
  void fill(Tlb::Entry& entry, const PageTableWalker::Walk& walk,
            const PageTableWalker::Request& want);
  /// An entry for `access` is gone, or says something else.
  void lose(Access access) { observer_.mapping_evicted(tlb_.shared() ? Access::read : access); }
  void count_flush() {
    ++epoch_;
    ++stats_.flushes;
  }
  /// The address bits within the largest page there may be: a piece of a page of 1 GiB does not
  /// say that it is one.
  std::uint64_t within_largest_page() const;
  /// control_changed() without reading the page-directory pointers; returns whether a processor
  /// reads them now.
  bool take_control(bool reload_cr3);

  Engine& engine_;
  WalkObserver& observer_;
  PageTableWalker walker_;
  Tlb tlb_;
  PagingMode mode_;
  WalkPolicy policy_ = WalkPolicy::all_rights;
  std::uint32_t pointer_cr0_ = 0, pointer_cr4_ = 0;  ///< bits whose change reads the pointers anew
  std::uint64_t a20_mask_ = ~std::uint64_t{0};
  std::uint32_t epoch_ = 0;
  Stats stats_;
};

}  // namespace citcat
