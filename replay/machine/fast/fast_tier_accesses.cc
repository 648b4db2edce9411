// What blocks and strings of the fast tier access: pages come into the tables of the handlers, and
// what a handler could not access is made possible, or left to somebody else.

#include "replay/machine/fast/fast_tier.h"

namespace citcat {

using fast::Block;
using fast::State;
using fast::TlbEntry;

namespace {

/// While it is there, walks are made for an access of `op`.
class WalksFor {
 public:
  WalksFor(const fast::Op*& current, const fast::Op* op) : current_(current) { current_ = op; }
  ~WalksFor() { current_ = nullptr; }
  WalksFor(const WalksFor&) = delete;
  WalksFor& operator=(const WalksFor&) = delete;

 private:
  const fast::Op*& current_;
};

/// The machine's TLB for data holds only one of the two pages at a time.
bool share_entry(LinearAddr a, LinearAddr b) {
  const LinearAddr::PageNumber differing = a.page() ^ b.page();
  return differing != 0 && differing % Mmu::kDataEntries == 0;
}

}  // namespace

fast::StringPage FastTier::find_string_page(LinearAddr linear, bool write) {
  State& s = *s_;
  const std::size_t index = State::tlb_index(linear);
  TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  if (entry.tag != linear.page_begin().value) {
    const LinearAddr code = shape_.linear(eip_);
    if (cpu_.mmu.takes_place_of(linear, code) || !fill(linear, write)) return {};
  }
  const PhysAddr at{(write ? s.write_frames : s.read_frames)[index] + linear.offset_in_page()};
  if (write && (store_.holds_code(at.page()) || cpu_.memory.holds_code(at.page()))) {
    entry.tag = TlbEntry::kNone;
  }
  return {cpu_.memory.host(at), at};
}

void FastTier::note_string_store(PhysAddr at, std::uint32_t size, const PhysAddr* from) {
  if (cpu_.memory.holds_code(at.page())) cpu_.memory.drop_code(at, size);
  cpu_.memory.mark_defined(at, size);
  if (exact_ && from != nullptr) expectation_.judge->copied(*from, at, size);
}

/// Brings a page into the tables of the handlers, if that has no other effect.
bool FastTier::fill(LinearAddr linear, bool write) {
  State& s = *s_;
  const LinearAddr page = linear.page_begin();
  if (shape_.bits64 && !CpuContext::is_canonical(page.value)) return false;
  const auto known = translate(page, write ? Access::write : Access::read);
  if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
  const std::uint32_t frame = known->frame.page();
  if (!write && !cpu_.memory.has_defined(frame)) return false;
  if (write && exact_) {
    cpu_.memory.note_stores(frame);
  } else if (write) {
    cpu_.memory.lend(frame);
  }
  const std::size_t index = State::tlb_index(linear);
  if (exact_) {
    // Asking for what is defined of a frame may make room for it.
    ByteMask& defined = cpu_.memory.defined_bytes(frame);
    check_pages();
    if (write) {
      s.defined_writes[index] = &defined;
    } else {
      s.defined_reads[index] = &defined;
    }
  }
  TlbEntry& entry = write ? s.writes[index] : s.reads[index];
  entry.tag = page.value;
  (write ? s.write_frames : s.read_frames)[index] = known->frame.low32();
  entry.host = reinterpret_cast<std::uint8_t*>(
      reinterpret_cast<std::uintptr_t>(cpu_.memory.host(known->frame)) - page.value);
  return true;
}

/// The code of the block in progress lies where it did.
bool FastTier::code_is_there(const Block& block) {
  State& s = *s_;
  PhysAddr frame;
  if (block.crosses) {
    const LinearAddr second = cpu_.onward(block.linear.page_begin(), kPageSize);
    if (!find_code_page(second, frame) || frame != block.second_frame) return false;
  } else if (s.code_pages[block.page_index] == block.where) {
    return true;
  }
  if (!find_code_page(block.linear, frame) || frame != block.frame) return false;
  check_pages();
  if (!block.crosses) s.code_pages[block.page_index] = block.where;
  return true;
}

fast::MissResolver::Answer FastTier::resolve(State& s, const fast::Op* op) {
  if (s.one_op != nullptr || s.miss_size == 0) return Answer::careful;
  const Block& block = *s.block;
  const LinearAddr linear{s.miss_linear};
  if (linear.offset_in_page() + s.miss_size > kPageSize) return Answer::careful;
  const std::size_t index = State::tlb_index(linear);
  TlbEntry& entry = s.miss_write ? s.writes[index] : s.reads[index];
  // It is known: what is missing is what it holds.
  if (entry.tag == linear.page_begin().value) return Answer::careful;
  // With one TLB for both, data may take the place of the code that is running.
  const LinearAddr second = cpu_.onward(block.linear.page_begin(), kPageSize);
  if (cpu_.mmu.takes_place_of(linear, block.linear) ||
      (block.crosses && cpu_.mmu.takes_place_of(linear, second))) {
    return Answer::careful;
  }
  // An operation that reads and writes could lose one page with each page that it gains, for ever.
  const TlbEntry& other = s.miss_write ? s.reads[index] : s.writes[index];
  if (other.tag != TlbEntry::kNone && share_entry(linear, LinearAddr{other.tag})) {
    return Answer::careful;
  }
  // Walks are told as somewhere within the block, or what is judged as one.
  const bool judged_as_one = s.batch_limit > 1 && !references_;
  cpu_.position = {judged_as_one ? batch_first_ : position() - block.count, 0};
  const WalksFor walks(walks_for_, op);
  // Its own code must still lie where it does.
  if (!fill(linear, s.miss_write) || !code_is_there(block)) return Answer::careful;
  if (entry.tag != linear.page_begin().value) return Answer::careful;
  if (!s.miss_write) return Answer::again;
  const PhysAddr at{s.write_frames[index] + linear.offset_in_page()};
  if (!store_.holds_code(at.page()) && !cpu_.memory.holds_code(at.page())) return Answer::again;
  // Each store to a frame of code is looked at. What ends its block with one is made elsewhere.
  if (block.number_of(op) + 1 == block.count && block.tail == Block::Tail::branch) {
    entry.tag = TlbEntry::kNone;
    return Answer::careful;
  }
  alone_ = {at, s.miss_size, index};
  return Answer::alone;
}

bool FastTier::store_made(State& s) {
  s.writes[alone_.index].tag = TlbEntry::kNone;
  if (cpu_.memory.holds_code(alone_.at.page())) cpu_.memory.drop_code(alone_.at, alone_.size);
  const bool dropped = store_.stored(alone_.at, alone_.size);
  return !dropped || s.block->frame.page() != alone_.at.page();
}

}  // namespace citcat
