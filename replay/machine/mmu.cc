#include "replay/machine/mmu.h"

#include "events/machine/control_bits.h"

namespace citcat {

std::shared_ptr<const Mmu::State> Mmu::save() const {
  return std::make_shared<const State>(
      State{tlb_.code_entries(), tlb_.data_entries(), walker_.pointers()});
}

void Mmu::restore(const State& state) {
  (void)take_control(false);
  tlb_.restore(state.itlb, state.dtlb);
  walker_.set_pointers(state.pdptes);
  ++epoch_;
}

void Mmu::flush_all() {
  count_flush();
  tlb_.drop_all();
}

std::uint64_t Mmu::within_largest_page() const {
  return mode_.long_mode ? 0x3fffffff : mode_.pae ? 0x1fffff : 0x3fffff;
}

void Mmu::invalidate_page(LinearAddr page) {
  ++epoch_;
  // The engine holds pieces of large pages too.
  if (tlb_.drop_page(page, within_largest_page())) lose(Access::read);
}

void Mmu::drop(LinearAddr page) {
  ++epoch_;
  tlb_.drop_piece(page);
  lose(Access::read);
}

void Mmu::invalidate_page_of(LinearAddr page, std::uint16_t context) {
  ++epoch_;
  if (tlb_.drop_page_of(page, context, within_largest_page())) lose(Access::read);
}

void Mmu::invalidate_context(std::uint16_t context) {
  count_flush();
  tlb_.drop_context(context);
}

void Mmu::invalidate_contexts() {
  count_flush();
  tlb_.drop_unglobal();
}

void Mmu::state_loaded() {
  (void)take_control(true);
  flush_all();
  if (mode_.has_pointers()) walker_.load_pointers(false);
}

void Mmu::control_changed(bool reload_cr3) {
  if (take_control(reload_cr3)) walker_.load_pointers(true);
}

bool Mmu::take_control(bool reload_cr3) {
  const std::uint32_t cr0 = engine_.cr(0), cr4 = engine_.cr(4);
  const std::uint64_t cr3 = engine_.wide().cr(3);
  const PagingMode before = std::exchange(mode_, PagingMode::of(cr0, cr4, engine_.efer()));
  // Outside long mode CR3 has 32 bits (Intel SDM vol. 3, 4.3 and 4.4.1).
  walker_.set_root(mode_, mode_.long_mode ? cr3 : static_cast<std::uint32_t>(cr3));
  const auto context = static_cast<std::uint16_t>(mode_.contexts ? cr3 & kPageMask : 0);
  tlb_.set_context(context);
  a20_mask_ = PhysicalSpace::kBeyond32 | engine_.a20_mask();
  ++epoch_;
  // Intel SDM vol. 3, 4.4.1: what makes a MOV to CR0 or CR4 read the page-directory pointers.
  const std::uint32_t of_cr0 = cr0 & (kCr0Pg | kCr0Cd | kCr0Nw);
  const std::uint32_t of_cr4 = cr4 & (kCr4Pae | kCr4Pge | kCr4Pse);
  const bool reads_pointers = reload_cr3 || of_cr0 != pointer_cr0_ || of_cr4 != pointer_cr4_;
  pointer_cr0_ = of_cr0;
  pointer_cr4_ = of_cr4;
  if (mode_ != before) {
    flush_all();
  } else if (reload_cr3) {
    // Intel SDM vol. 3, 4.10.4.1: a CR3 load keeps global entries when CR4.PGE is set, and those of
    // other contexts. Without CR4.PGE no entry is global.
    if (mode_.contexts) {
      invalidate_context(context);
    } else {
      invalidate_contexts();
    }
  }
  return mode_.has_pointers() && reads_pointers;
}

std::uint8_t Mmu::allowed_by(const PageTableWalker::Walk& walk, Access access) const {
  const auto may = [&](Access for_what, Rights rights) {
    return walker_.permitted(walk.rights, for_what, rights);
  };
  if (access == Access::execute) {
    // In a TLB of code to read is to execute; what has a TLB for both has no such rights.
    std::uint8_t executed = 0;
    if (may(access, Rights::supervisor)) executed |= kSupervisorRead;
    if (may(access, Rights::user)) executed |= kUserRead;
    if (!tlb_.shared()) return executed;
  }
  std::uint8_t allowed = 0;
  if (may(Access::read, Rights::supervisor)) allowed |= kSupervisorRead;
  if (mode_.smap) allowed |= kOverrideRead;
  if (may(Access::read, Rights::user)) allowed |= kUserRead;
  // A write to a clean page walks again, to set the dirty bit.
  if ((walk.leaf & kPageDirty) != 0) {
    if (may(Access::write, Rights::supervisor)) allowed |= kSupervisorWrite;
    if (mode_.smap && may(Access::write, Rights::override)) allowed |= kOverrideWrite;
    if (may(Access::write, Rights::user)) allowed |= kUserWrite;
  }
  return allowed;
}

PhysAddr Mmu::walk_and_fill(Tlb::Entry& entry, const PageTableWalker::Request& want) {
  ++stats_.walks;
  PageTableWalker::Walk result;
  try {
    result = walker_.walk(want);
  } catch (const PageFault&) {
    // Intel SDM vol. 3, 4.10.4.1: a page fault drops the cached translations of its page.
    for (const Access access : {Access::execute, Access::read}) {
      Tlb::Entry& cached = tlb_.entry_of(want.address, access);
      if (cached.tag != tlb_.tag(want.address)) continue;
      cached.tag = Tlb::kInvalid;
      lose(access);
    }
    throw;
  }
  fill(entry, result, want);
  observer_.mapping_used(want.address.page_begin(), PhysAddr{result.frame});
  return PhysAddr{(result.frame | want.address.offset_in_page()) & a20_mask_};
}

void Mmu::fill(Tlb::Entry& entry, const PageTableWalker::Walk& walk,
               const PageTableWalker::Request& want) {
  const Tlb::Entry before = entry;
  entry.tag = tlb_.tag(want.address);
  entry.frame = walk.frame;
  entry.allowed = allowed_by(walk, want.access);
  if (policy_ == WalkPolicy::rights_as_used) {
    constexpr unsigned kReads = kSupervisorRead | kUserRead | kOverrideRead;
    constexpr unsigned kOfUser = kUserRead | kUserWrite;
    if (want.access != Access::write) entry.allowed &= kReads;
    if (want.rights != Rights::user) entry.allowed &= static_cast<std::uint8_t>(~kOfUser);
  }
  entry.global = mode_.global_pages && (walk.leaf & kPageGlobal) != 0;
  entry.large = walk.large;
  if (walk.large) tlb_.note_large(want.address);
  const bool evicts = before.tag != Tlb::kInvalid && before.tag != entry.tag;
  const bool moves = before.frame != entry.frame;
  if (evicts || moves) ++epoch_;
  const bool forbids = (before.allowed & ~entry.allowed) != 0;
  if (evicts || (before.tag == entry.tag && (moves || forbids))) lose(want.access);
}

std::optional<Translation> Mmu::fill_quietly(Tlb::Entry& entry,
                                             const PageTableWalker::Request& want) {
  ++stats_.walks;
  ++stats_.quiet_walks;
  try {
    const PageTableWalker::Walk result = walker_.walk(want);
    if (result.marks) return std::nullopt;
    fill(entry, result, want);
    for (const PageTableWalker::Walk::Read& read : result.reads) {
      if (read.size != 0) observer_.quiet_walk_read(read.at, read.size);
    }
    return Translation{PhysAddr{entry.frame & a20_mask_}, want.access == Access::write};
  } catch (const PageFault&) {
    return std::nullopt;
  } catch (const UndefinedMemory&) {
    return std::nullopt;
  }
}

std::optional<Translation> Mmu::walk_freely(const PageTableWalker::Request& want) {
  try {
    const PageTableWalker::Walk result = walker_.walk(want);
    const std::uint8_t allowed = allowed_by(result, want.access);
    if (!has(allowed, needed(want.access, want.rights))) return std::nullopt;
    const bool writable = has(allowed, needed(Access::write, want.rights));
    return Translation{PhysAddr{result.frame & a20_mask_}, writable};
  } catch (const PageFault&) {
    return std::nullopt;
  } catch (const UndefinedMemory&) {
    return std::nullopt;
  }
}

}  // namespace citcat
