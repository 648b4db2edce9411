#include "replay/machine/fast/access_resolver.h"

namespace citcat::fast {

namespace {

/// The machine's TLB for data holds only one of the two pages at a time.
bool share_entry(LinearAddr a, LinearAddr b) {
  const LinearAddr::PageNumber differing = a.page() ^ b.page();
  return differing != 0 && differing % Tlb::kDataEntries == 0;
}

}  // namespace

AccessResolver::AccessResolver(CpuContext& cpu, TierState& state, HandlerPages& pages,
                               BlockStore& store, BlockRunner& runner, BlockReporter& reporter)
    : cpu_(cpu), t_(state), pages_(pages), store_(store), runner_(runner), reporter_(reporter) {
  for (auto& s : t_.states) s->resolver = this;
}

/// The code of the block in progress is still mapped at the same frame.
bool AccessResolver::code_is_there(const Block& block) {
  State& s = *t_.in_use;
  PhysAddr frame;
  if (block.crosses) {
    const LinearAddr second = cpu_.onward(block.linear.page_begin(), kPageSize);
    if (!pages_.find_code(second, frame) || frame != block.second_frame) return false;
  } else if (s.code_pages[block.page_index] == block.where) {
    return true;
  }
  if (!pages_.find_code(block.linear, frame) || frame != block.frame) return false;
  pages_.check();
  if (!block.crosses) s.code_pages[block.page_index] = block.where;
  return true;
}

MissResolver::Answer AccessResolver::resolve(State& s, const Op* op) {
  if (s.one_op != nullptr || s.miss_size == 0) return Answer::careful;
  const Block& block = *s.block;
  const LinearAddr linear{s.miss_linear};
  if (linear.offset_in_page() + s.miss_size > kPageSize) return Answer::careful;
  const std::size_t index = State::tlb_index(linear);
  TlbEntry& entry = s.miss_write ? s.writes[index] : s.reads[index];
  // The page is known; the memory in it is undefined.
  if (entry.tag == linear.page_begin().value) return Answer::careful;
  // Where code and data share a TLB, data may evict the code that is running.
  const LinearAddr second = cpu_.onward(block.linear.page_begin(), kPageSize);
  if (cpu_.mmu.tlb().takes_place_of(linear, block.linear) ||
      (block.crosses && cpu_.mmu.tlb().takes_place_of(linear, second))) {
    return Answer::careful;
  }
  // An operation that reads and writes could lose one page with each page that it gains, for ever.
  const TlbEntry& other = s.miss_write ? s.reads[index] : s.writes[index];
  if (other.tag != TlbEntry::kNone && share_entry(linear, LinearAddr{other.tag})) {
    return Answer::careful;
  }
  // Walks are reported within the block, or within the batch that is judged as one.
  const bool judged_as_one = s.batch_limit > 1 && !reporter_.references;
  cpu_.position = {judged_as_one ? runner_.batch_first() : t_.position() - block.count, 0};
  const BlockReporter::WalksFor walks(reporter_, op);
  if (!pages_.fill(linear, s.miss_write) || !code_is_there(block)) return Answer::careful;
  if (entry.tag != linear.page_begin().value) return Answer::careful;
  if (!s.miss_write) return Answer::again;
  const PhysAddr at{s.write_frames[index] + linear.offset_in_page()};
  if (!store_.holds_code(at.page()) && !cpu_.memory.holds_code(at.page())) return Answer::again;
  // Each store to a frame of code is looked at. The tier leaves one that ends its block.
  if (block.number_of(op) + 1 == block.count && block.tail == Block::Tail::branch) {
    entry.tag = TlbEntry::kNone;
    return Answer::careful;
  }
  alone_ = {at, s.miss_size, index};
  return Answer::alone;
}

bool AccessResolver::store_made(State& s) {
  s.writes[alone_.index].tag = TlbEntry::kNone;
  if (cpu_.memory.holds_code(alone_.at.page())) cpu_.memory.drop_code(alone_.at, alone_.size);
  const bool dropped = store_.stored(alone_.at, alone_.size);
  return !dropped || s.block->frame.page() != alone_.at.page();
}

}  // namespace citcat::fast
