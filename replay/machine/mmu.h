#pragma once
// Address translation as the captured processor does it: page walks with accessed and dirty bits
// (Intel SDM vol. 3, chapter 4) and a TLB that keeps global pages over a CR3 load.
//
// The engine has a page walker of its own, but it cannot be observed, it drops global pages at
// every CR3 load, and it sets an accessed bit before it refuses a write. So the engine asks here,
// and the walks that the processor makes happen before the engine touches memory.

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "events/recording.h"
#include "replay/engine/engine.h"
#include "replay/machine/memory.h"
#include "replay/machine/observer.h"

namespace citcat {

enum class Access : std::uint8_t { read, write, execute };

/// A page fault as the architecture reports it.
struct PageFault {
  LinearAddr address;  ///< for CR2
  std::uint32_t error_code = 0;
};

/// Thrown when a translation or read needs memory that no evidence defines, or that does not
/// exist: the replay has left the evidence.
struct UndefinedMemory {
  PhysAddr address;
  std::uint32_t size = 0;
  const char* what = "";
};

/// Told of page-walk accesses.
class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  virtual void walk_read(PhysAddr entry, std::uint32_t size) = 0;
  /// Read by a walk that had no other effect than a TLB entry, some time within the code that runs
  /// unreported.
  virtual void quiet_walk_read(PhysAddr entry, std::uint32_t size) = 0;
  virtual void walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) = 0;
  virtual void mapping_used(LinearAddr page, PhysAddr frame) = 0;
  /// The TLB lost a translation for `access`, or for any where that is not execute: another needs
  /// its place, its page lies elsewhere by now, or an access to it faulted.
  virtual void mapping_evicted(Access access) = 0;
  /// A page-directory-pointer entry that no evidence defines: PAE processors read these at the
  /// CR3 load, which may have been before the capture began. Returns its value when it can be
  /// told from the evidence.
  virtual std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted) = 0;
};

/// What a walk brings into the TLB, which the architecture leaves to the processor: it decides how
/// often page tables are read, nothing else.
enum class WalkPolicy : std::uint8_t {
  all_rights,      ///< whatever the tables allow
  rights_as_used,  ///< only what the walk was made for: a write after a read walks again, and so
                   ///< does a user after the supervisor
};

class Mmu {
 public:
  static constexpr std::uint32_t kInvalid = 1;  ///< a tag with a low bit is no page

  /// `bus` tells where pages beyond 4 GiB are held; `one_tlb`: code and data share its entries. All
  /// must outlive the object.
  Mmu(Engine& engine, Memory& memory, const BusModel& bus, WalkObserver& observer, bool one_tlb);

  /// What the processor has by its CPUID, where that tells: bits of physical addresses, and pages
  /// of 1 GiB. Entries of long mode that have others are reserved.
  void set_limits(unsigned physical_bits, bool gigabyte_pages);
  static constexpr unsigned kMostPhysicalBits = 52;  ///< Intel SDM vol. 3, 4.1.4

  /// Takes the paging mode over from the engine's CR0, CR3, CR4. `reload_cr3`: CR3 was written, and
  /// the TLB is to lose what that drops.
  void control_changed(bool reload_cr3);
  /// The same for registers that no instruction has written: the observer is told of nothing that
  /// is read, and the TLBs are empty.
  void state_loaded();
  /// Drops everything, as a TLB flush including global pages does.
  void flush_all();
  void invalidate_page(LinearAddr page);
  /// INVPCID (Intel SDM vol. 2): of a page, of a context, of all contexts. Without global pages.
  void invalidate_page_of(LinearAddr page, std::uint16_t context);
  void invalidate_context(std::uint16_t context);
  void invalidate_contexts();

  /// Translates one byte's address. Throws PageFault, or UndefinedMemory.
  PhysAddr translate(LinearAddr address, Access access, bool user) {
    return translate_for(address, access, program(user));
  }
  /// Translates what the processor itself accesses with supervisor rights: descriptor tables and
  /// task segments.
  PhysAddr translate_implicitly(LinearAddr address, Access access) {
    return translate_for(address, access, Who::processor);
  }

  /// The same without any effect: what the engine is told. nullopt where translate() would fault.
  std::optional<Translation> peek(LinearAddr address, Access access, bool user) {
    return peek_for(address, access, program(user));
  }
  std::optional<Translation> peek_implicitly(LinearAddr address, Access access) {
    return peek_for(address, access, Who::processor);
  }
  /// Where a page lies, whoever may read it.
  std::optional<Translation> find(LinearAddr address) {
    return peek_for(address, Access::read, smap_ ? Who::override : Who::processor);
  }
  /// The program reaches pages of users with supervisor rights though CR4.SMAP is set: EFLAGS.AC.
  bool overrides_smap() const { return smap_ && (engine_.system_flags() & kFlagAc) != 0; }

  /// A TLB entry. The tag is the page's address, or odd when the entry is empty. Its upper 12 bits,
  /// which are alike in an address, are told apart by the process-context identifier.
  struct Entry {
    std::uint64_t tag = kInvalid;
    std::uint32_t frame = 0;
    std::uint8_t allowed = 0;  ///< what may be done without another walk
    bool global = false;
    bool large = false;  ///< a piece of a page of 2 or 4 MiB
    bool operator==(const Entry&) const = default;
  };

  /// As translate(), where that has no effect but a TLB entry: nullopt where it would fault, or
  /// write page tables, or needs memory that no evidence defines.
  std::optional<Translation> translate_quietly(LinearAddr address, Access access, bool user) {
    if (!paging_) return unpaged(address);
    Entry& entry = entry_of(address, access);
    const Who who = program(user);
    const std::uint8_t need = needed(access, who);
    if (entry.tag != tag(address) || (entry.allowed & need) != need) {
      if (!fill_quietly(entry, address, access, who)) return std::nullopt;
    }
    return Translation{PhysAddr{entry.frame & a20_mask_}, access == Access::write};
  }

  /// As translate(), where the TLB holds the page and nothing is left to be marked; writable where
  /// a write would find it so too.
  std::optional<Translation> held(LinearAddr address, Access access, bool user) {
    if (!paging_) return unpaged(address);
    return held_for(address, access, program(user));
  }

  /// What the TLB and the page-directory-pointer registers hold; part of a checkpoint, because
  /// entries may outlive what memory says. The TLBs have kCodeEntries and kDataEntries.
  struct State {
    std::vector<Entry> itlb, dtlb;
    std::array<std::optional<std::uint64_t>, 4> pdptes;
  };
  static constexpr std::size_t kCodeEntries = 1024, kDataEntries = 2048;
  std::shared_ptr<const State> save() const;
  void restore(const State& state);

  /// With `data` the TLB loses what it holds of `code`, which is another page.
  bool takes_place_of(LinearAddr data, LinearAddr code) const {
    const LinearAddr::PageNumber differing = data.page() ^ code.page();
    return &code_tlb_ == &dtlb_ && differing != 0 && differing % kDataEntries == 0;
  }

  /// Changes whenever a page may have come to lie elsewhere.
  std::uint32_t epoch() const { return epoch_; }

  /// Counted since it was made.
  struct Stats {
    std::uint64_t walks = 0;        ///< to fill an entry
    std::uint64_t quiet_walks = 0;  ///< of these, by translate_quietly()
    std::uint64_t flushes = 0;      ///< whole or but for global pages
  };
  const Stats& stats() const { return stats_; }

  bool paging() const { return paging_; }
  /// Where the directories lie that PAE's page-directory pointers name, as far as they are known.
  std::vector<PhysAddr> page_directories() const;
  void set_walk_policy(WalkPolicy policy) { policy_ = policy; }
  void set_a20_mask(std::uint32_t mask) {
    a20_mask_ = mask;
    ++epoch_;
  }

 private:
  // Entry::allowed.
  enum : std::uint8_t {
    kSupervisorRead = 1,
    kSupervisorWrite = 2,
    kUserRead = 4,
    kUserWrite = 8,
    kOverrideRead = 16,
    kOverrideWrite = 32,
  };
  static constexpr std::uint32_t kFlagAc = 1u << 18;
  /// Whose rights an access has. CR4.SMAP keeps pages of users from supervisors and from the
  /// processor's own accesses, which the SDM calls implicit (vol. 3, 4.6.1).
  enum class Who : std::uint8_t {
    processor,  ///< a supervisor too, where CR4.SMAP and EFLAGS.AC do not make a difference
    user,
    override,  ///< a supervisor with EFLAGS.AC
  };
  Who program(bool user) const {
    if (user) return Who::user;
    return overrides_smap() ? Who::override : Who::processor;
  }
  std::uint64_t tag(LinearAddr a) const { return a.page_begin().value ^ context_; }
  /// Addresses are alike from here on up.
  static constexpr unsigned kContextShift = 52;
  static std::uint64_t context_tag(std::uint16_t context) {
    return std::uint64_t{context} << kContextShift;
  }
  static std::uint8_t needed(Access access, Who who) {
    if (who == Who::user) return access == Access::write ? kUserWrite : kUserRead;
    if (who == Who::processor || access == Access::execute) {
      return access == Access::write ? kSupervisorWrite : kSupervisorRead;
    }
    return access == Access::write ? kOverrideWrite : kOverrideRead;
  }
  PhysAddr translate_for(LinearAddr address, Access access, Who who) {
    if (!paging_) [[unlikely]]
      return PhysAddr{address.low32() & a20_mask_};
    Entry& entry = entry_of(address, access);
    const std::uint8_t need = needed(access, who);
    if (entry.tag == tag(address) && (entry.allowed & need) == need) [[likely]] {
      return PhysAddr{(entry.frame | address.offset_in_page()) & a20_mask_};
    }
    return walk_and_fill(entry, address, access, who);
  }
  std::optional<Translation> peek_for(LinearAddr address, Access access, Who who);
  std::optional<Translation> held_for(LinearAddr address, Access access, Who who) {
    const Entry& entry = entry_of(address, access);
    const std::uint8_t need = needed(access, who);
    if (entry.tag != tag(address) || (entry.allowed & need) != need) return std::nullopt;
    const std::uint8_t to_write = needed(Access::write, who);
    return Translation{PhysAddr{entry.frame & a20_mask_}, (entry.allowed & to_write) == to_write};
  }
  Entry& entry_of(LinearAddr address, Access access) {
    std::vector<Entry>& tlb = access == Access::execute ? code_tlb_ : dtlb_;
    return tlb[address.page() & (tlb.size() - 1)];
  }
  Translation unpaged(LinearAddr address) const {
    return {PhysAddr{address.page_begin().low32() & a20_mask_}, true};
  }
  struct Walk;
  bool fill_quietly(Entry& entry, LinearAddr address, Access access, Who who);
  void fill(Entry& entry, LinearAddr address, const Walk& walk, Access access, Who who);
  void lose(Access access);
  /// Global pages of all contexts, too, where `global`.
  void drop_page(LinearAddr address, std::uint64_t context, bool global);
  PhysAddr walk_and_fill(Entry& entry, LinearAddr address, Access access, Who who);
  struct WalkRequest {
    LinearAddr address;
    Access access = Access::read;
    Who who = Who::processor;
    bool effects = false;  ///< set accessed and dirty bits, tell the observer
  };
  /// Checks rights at the entry that maps the page and marks it; the frame is the caller's.
  void finish_walk(Walk& walk, const WalkRequest& want, std::uint32_t rights, PhysAddr leaf_at,
                   std::uint32_t leaf);
  void finish_table_walk(Walk& walk, const WalkRequest& want, PhysAddr pde_at, std::uint32_t pde,
                         PhysAddr pte_at, std::uint32_t pte);
  Walk walk(LinearAddr address, Access access, Who who, bool effects);
  Walk walk_two_level(LinearAddr address, Access access, Who who, bool effects);
  Walk walk_pae(LinearAddr address, Access access, Who who, bool effects);
  Walk walk_four_level(const WalkRequest& want);
  void refuse_reserved(const WalkRequest& want, std::uint64_t entry, unsigned page_shift,
                       unsigned level) const;
  std::uint64_t read_wide_entry(PhysAddr at);
  PhysAddr place_of(MachineAddr address, PhysAddr named_at, const char* beyond) const;
  void read_noted(Walk& walk, PhysAddr at, std::uint32_t size, bool effects);
  /// control_changed() without reading the page-directory pointers; returns whether a processor
  /// reads them now.
  bool take_control(bool reload_cr3);
  /// `told`: to the observer.
  void load_pdptes(bool told);
  std::uint64_t pdpte(LinearAddr address, bool effects);
  std::uint32_t read_entry(PhysAddr at);
  void write_entry(PhysAddr at, std::uint32_t value);
  [[noreturn]] void fault(LinearAddr address, Access access, Who who, bool present,
                          bool reserved = false) const;
  bool permitted(std::uint32_t rights, Access access, Who who) const;
  bool may_execute(std::uint32_t rights, bool user) const;
  template <class Which>
  void drop(Which&& which);
  std::uint8_t rights_to_allowed(std::uint32_t rights, bool dirty, Access access) const;

  Engine& engine_;
  Memory& memory_;
  const BusModel& bus_;
  WalkObserver& observer_;
  bool paging_ = false, write_protect_ = false, large_pages_ = false, pae_ = false,
       global_pages_ = false;
  bool long_mode_ = false;        ///< four levels, whose entries have eight bytes
  bool no_execute_ = false;       ///< EFER.NXE
  bool keeps_from_user_ = false;  ///< CR4.SMEP
  bool smap_ = false;             ///< CR4.SMAP
  bool contexts_ = false;         ///< CR4.PCIDE
  bool gigabyte_pages_ = true;
  std::uint64_t reserved_bits_ = 0;  ///< bits of an entry above the processor's addresses
  std::uint64_t context_ = 0;        ///< context_tag() of the current one
  WalkPolicy policy_ = WalkPolicy::all_rights;
  std::uint32_t cr3_ = 0;
  std::uint32_t pointer_cr0_ = 0, pointer_cr4_ = 0;  ///< bits whose change reads the pointers anew
  std::uint32_t a20_mask_ = 0xffffffff;
  std::uint32_t epoch_ = 0;
  Stats stats_;
  std::array<std::optional<std::uint64_t>, 4> pdptes_{};
  // Direct-mapped and large: entries live until something drops them, as software must assume.
  std::vector<Entry> itlb_ = std::vector<Entry>(kCodeEntries);
  std::vector<Entry> dtlb_ = std::vector<Entry>(kDataEntries);
  std::vector<Entry>& code_tlb_;  ///< one of these
  /// Of 4 MiB each: where entries of large pages may be.
  std::bitset<1024> large_regions_;
};

}  // namespace citcat
