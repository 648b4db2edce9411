#include "replay/machine/fast/handler_pages.h"

namespace citcat::fast {

namespace {

constexpr std::uint64_t kNoCodePage = ~std::uint64_t{0};  ///< in State::code_pages

}  // namespace

HandlerPages::HandlerPages(CpuContext& cpu, TierState& state, bool exact)
    : cpu_(cpu), t_(state), exact_(exact) {
  forget();
}

void HandlerPages::forget() {
  for (auto& state : t_.states) {
    for (TlbEntry& entry : state->reads) entry.tag = TlbEntry::kNone;
    for (TlbEntry& entry : state->writes) entry.tag = TlbEntry::kNone;
    state->code_pages.fill(kNoCodePage);
  }
}

void HandlerPages::check() {
  if (!stale_ && epoch_ == cpu_.mmu.epoch() && mask_epoch_ == cpu_.memory.mask_epoch()) return;
  stale_ = false;
  epoch_ = cpu_.mmu.epoch();
  mask_epoch_ = cpu_.memory.mask_epoch();
  forget();
}

void HandlerPages::forget_writes() {
  for (auto& state : t_.states) {
    for (TlbEntry& entry : state->writes) entry.tag = TlbEntry::kNone;
  }
}

/// Mmu::look_up(). The entry that the TLB evicts for a page has that page's slot in each
/// table here too, so nothing else is dropped.
std::optional<Translation> HandlerPages::translate(LinearAddr linear, Access access) {
  check();
  const auto known = cpu_.mmu.look_up(linear, access, cpu_.program(), Lookup::quiet);
  if (!stale_ && epoch_ == cpu_.mmu.epoch()) return known;
  stale_ = false;
  epoch_ = cpu_.mmu.epoch();
  static_assert(Tlb::kDataEntries % kTlbEntries == 0 && Tlb::kCodeEntries % kCodePages == 0);
  const std::size_t index = State::tlb_index(linear), code_index = linear.page() & (kCodePages - 1);
  for (auto& state : t_.states) {
    state->reads[index].tag = state->writes[index].tag = TlbEntry::kNone;
    state->code_pages[code_index] = kNoCodePage;
  }
  return known;
}

bool HandlerPages::find_code(LinearAddr linear, PhysAddr& frame) {
  const auto known = translate(linear, Access::execute);
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  frame = known->frame;
  return true;
}

bool HandlerPages::fill(LinearAddr linear, bool write) {
  State& s = *t_.in_use;
  const LinearAddr page = linear.page_begin();
  if (t_.shape.bits64 && !CpuContext::is_canonical(page.value)) return false;
  const auto known = translate(page, write ? Access::write : Access::read);
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  const FrameNumber frame = known->frame.page();
  if (!write && !cpu_.memory.has_defined(frame)) return false;
  if (write && exact_) {
    cpu_.memory.note_stores(frame);
  } else if (write) {
    cpu_.memory.lend(frame);
  }
  const std::size_t index = State::tlb_index(linear);
  if (exact_) {
    // defined_bytes() may allocate the mask of the frame.
    ByteMask& defined = cpu_.memory.defined_bytes(frame);
    check();
    if (write) {
      s.defined_writes[index] = &defined;
    } else {
      s.defined_reads[index] = &defined;
    }
  }
  TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  entry.tag = page.value;
  (write ? s.write_frames : s.read_frames)[index] = known->frame.value;
  entry.host = reinterpret_cast<std::uint8_t*>(
      reinterpret_cast<std::uintptr_t>(cpu_.memory.host(known->frame)) - page.value);
  return true;
}

}  // namespace citcat::fast
