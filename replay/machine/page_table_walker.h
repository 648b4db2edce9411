#pragma once
// Walks of page tables as the processor makes them (Intel SDM vol. 3, chapter 4): two levels,
// PAE's, four levels; rights, accessed and dirty bits.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "events/machine/address.h"
#include "replay/machine/memory.h"
#include "replay/machine/memory_access.h"
#include "replay/machine/walk_observer.h"

namespace citcat {

/// The paging mode by control registers and EFER.
struct PagingMode {
  bool paging = false;
  bool write_protect = false;    ///< CR0.WP
  bool large_pages = false;      ///< CR4.PSE
  bool pae = false;              ///< CR4.PAE
  bool global_pages = false;     ///< CR4.PGE
  bool long_mode = false;        ///< EFER.LMA: four levels, whose entries have eight bytes
  bool no_execute = false;       ///< EFER.NXE
  bool keeps_from_user = false;  ///< CR4.SMEP
  bool smap = false;             ///< CR4.SMAP
  bool contexts = false;         ///< CR4.PCIDE, in long mode

  static PagingMode of(std::uint32_t cr0, std::uint32_t cr4, std::uint64_t efer);
  /// Page-directory pointers are in registers, read when CR3 is loaded (SDM vol. 3, 4.4.1).
  bool has_pointers() const { return paging && pae && !long_mode; }
  bool operator==(const PagingMode&) const = default;
};

/// Bits of page-table entries (Intel SDM vol. 3, tables 4-4 to 4-6).
inline constexpr std::uint32_t kPageDirty = 0x40, kPageGlobal = 0x100;

class PageTableWalker {
 public:
  /// By whose rights a page is reached: Who with what EFLAGS.AC makes of it.
  enum class Rights : std::uint8_t {
    supervisor,
    user,
    override,  ///< a supervisor whom CR4.SMAP does not keep out
  };
  struct Request {
    LinearAddr address;
    Access access = Access::read;
    Rights rights = Rights::supervisor;
    bool effects = false;  ///< set accessed and dirty bits, notify the observer
  };
  /// Where a walk came to.
  struct Walk {
    std::uint64_t frame = 0;   ///< address of the 4 KiB page
    std::uint32_t rights = 0;  ///< writable, user, no-execute, of all levels together
    std::uint32_t leaf = 0;    ///< the entry that maps the page, its low half
    bool large = false;
    bool marks = false;  ///< accessed or dirty bits had to be set, or would have to be
    struct Read {
      PhysAddr at;
      std::uint32_t size = 0;
    };
    std::array<Read, 4> reads;  ///< of each level, those that were made
  };
  using Pointers = std::array<std::optional<std::uint64_t>, 4>;

  /// Both must outlive the object.
  PageTableWalker(Memory& memory, WalkObserver& observer) : memory_(memory), observer_(observer) {}

  void set_root(const PagingMode& mode, std::uint64_t cr3) {
    mode_ = mode;
    cr3_ = cr3;
  }
  /// What CPUID says of page tables.
  struct Limits {
    unsigned physical_bits = kAddressBits;  ///< of an address; entries with others are reserved
    bool gigabyte_pages = true;             ///< without them their entries are reserved
    /// QEMU says of a fault by a reserved bit that the page was not present (QEMU 10,
    /// target/i386/tcg/system/excp_helper.c, mmu_translate()), against Intel SDM vol. 3, 4.7.
    bool is_emulated = false;
  };
  void set_limits(const Limits& limits);

  /// Throws PageFault, or UndefinedMemory.
  Walk walk(const Request& want);
  /// Whether pages of these Walk::rights may be reached so.
  bool permitted(std::uint32_t page, Access access, Rights rights) const;

  /// Reads PAE's page-directory pointers as a load of CR3 does. `told`: report it to the observer.
  void load_pointers(bool told);
  const Pointers& pointers() const { return pointers_; }
  void set_pointers(const Pointers& pointers) { pointers_ = pointers; }
  /// Where the directories lie that the pointers name, as far as they are known.
  std::vector<PhysAddr> page_directories() const;

 private:
  Walk walk_two_level(const Request& want);
  Walk walk_pae(const Request& want);
  Walk walk_four_level(const Request& want);
  /// Checks rights at the entry that maps the page and marks it; the frame is the caller's.
  void finish_walk(Walk& walk, const Request& want, std::uint32_t rights, PhysAddr leaf_at,
                   std::uint32_t leaf);
  void finish_table_walk(Walk& walk, const Request& want, std::uint32_t rights, PhysAddr pde_at,
                         std::uint32_t pde, PhysAddr pte_at, std::uint32_t pte);
  void refuse_reserved(const Request& want, std::uint64_t entry, unsigned page_shift,
                       unsigned level) const;
  void refuse_reserved_pae(const Request& want, std::uint64_t entry, unsigned page_shift) const;
  std::uint32_t rights_of(std::uint64_t entry) const;
  PhysAddr pointer_at(unsigned index) const {
    return PhysAddr{(cr3_ & ~std::uint64_t{0x1f}) + 8 * index};
  }
  std::uint64_t pointer(const Request& want);
  std::uint32_t read_entry(PhysAddr at);
  std::uint64_t read_wide_entry(PhysAddr at);
  std::uint64_t read_pae_entry(Walk& walk, PhysAddr at, bool effects);
  void write_entry(PhysAddr at, std::uint32_t value);
  void note_read(Walk& walk, PhysAddr at, std::uint32_t size, bool effects);
  [[noreturn]] void fault(const Request& want, bool present, bool reserved = false) const;

  Memory& memory_;
  WalkObserver& observer_;
  PagingMode mode_;
  std::uint64_t cr3_ = 0;
  Limits limits_;
  std::uint64_t reserved_bits_ = 0;  ///< bits of an entry above the processor's addresses
  Pointers pointers_{};
};

}  // namespace citcat
