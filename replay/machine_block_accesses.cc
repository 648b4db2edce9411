// What a block that ran unreported read and stored, for sinks that compare it.
//
// Stores are logged as the engine makes them, with what was there before; reads follow from the
// registers. A block that a sink does not agree with is taken back: its stores are undone in
// reverse, registers and flags are put back, and its instructions are executed once more, each
// reported. So a comparison of whole blocks need not find out what is wrong, nor judge what is
// rare: it may refuse whatever is not plainly right.

#include <algorithm>

#include "formats/error.h"
#include "replay/machine.h"

namespace citcat {

bool Machine::may_tell_accesses(const BlockTemplate& block) {
  if (position_.instruction < careful_until_) return false;
  if (drops_engine_tlb_) {
    drops_engine_tlb_ = false;
    engine_.flush_tlb();
  }
  return sink_->may_run_block(position_, block.whole_count);
}

void Machine::on_store(PhysAddr first, std::uint32_t size, std::uint64_t value) {
  if (pending_ == nullptr && !taken_back_) return;
  std::array<std::uint8_t, 8> bytes;
  std::memcpy(bytes.data(), &value, sizeof bytes);
  const std::uint32_t here = std::min(size, kPageSize - first.offset_in_page());
  log_store(first, std::span(bytes).first(here));
  if (here != size) [[unlikely]] {
    const auto next = mmu_.held(LinearAddr{linear_of_store() + here}, Access::write, user_mode());
    CITCAT_ASSERT(next.has_value());
    log_store(next->frame, std::span(bytes).subspan(here, size - here));
  }
  ++stores_begun_;
}

void Machine::log_store(PhysAddr at, std::span<const std::uint8_t> value) {
  BlockStore& store = block_stores_.emplace_back();
  store.address = at;
  store.size = static_cast<std::uint32_t>(value.size());
  store.number = stores_begun_;
  std::copy(value.begin(), value.end(), store.value.begin());
  const std::uint8_t* const host = memory_.host(at);
  CITCAT_ASSERT(host != nullptr);
  std::copy_n(host, value.size(), store.before.begin());
}

/// Linear address of the store being made, from the registers before its instruction.
std::uint32_t Machine::linear_of_store() const {
  CITCAT_ASSERT(pending_ != nullptr && stores_begun_ < pending_->stores.size());
  const std::uint32_t instruction = pending_->stores[stores_begun_].instruction;
  std::uint32_t skip = 0;
  while (skip < stores_begun_ &&
         pending_->stores[stores_begun_ - skip - 1].instruction == instruction) {
    ++skip;
  }
  std::optional<std::uint32_t> linear;
  for_each_access(pending_->instructions[instruction].info, engine_.gprs(),
                  block_registers_.base.data(), pending_->stack32, [&](const DataAccess& a) {
                    if (a.write && skip-- == 0) linear = a.linear;
                  });
  CITCAT_ASSERT(linear.has_value());
  return *linear;
}

/// Finds the stores that `block` made. False when they are not those that were foreseen.
bool Machine::gather_stores(const BlockTemplate& block) {
  const std::size_t expected = block.stores.size();
  if (stores_begun_ < expected) return false;
  stores_told_ = 0;
  for (const BlockStore& store : block_stores_) {
    if (store.number >= expected) break;
    const bool goes_on =
        stores_told_ != 0 && block_stores_[stores_told_ - 1].number == store.number;
    const std::uint32_t before = goes_on ? block_stores_[stores_told_ - 1].size : 0;
    ++stores_told_;
    const bool to_be_continued =
        stores_told_ < block_stores_.size() && block_stores_[stores_told_].number == store.number;
    if (!to_be_continued && before + store.size != block.stores[store.number].size) return false;
  }
  return !left_traces(stores_told_);
}

/// Stores from number `first` on belong to an instruction that did not complete: whether it changed
/// memory all the same. The processor finds out before it stores anything.
bool Machine::left_traces(std::size_t first) const {
  return std::any_of(block_stores_.begin() + static_cast<std::ptrdiff_t>(first),
                     block_stores_.end(), [&](const BlockStore& store) {
                       return std::memcmp(memory_.host(store.address), store.before.data(),
                                          store.size) != 0;
                     });
}

bool Machine::gather_read(const BlockTemplate::Read& read) {
  std::uint32_t linear = read.address(block_registers_);
  for (std::uint32_t left = read.size; left != 0;) {
    const std::uint32_t here = std::min(left, kPageSize - (linear & kPageMask));
    const auto known = mmu_.held(LinearAddr{linear}, Access::read, user_mode());
    if (!known) return false;
    const PhysAddr at = known->frame + (linear & kPageMask);
    if (!memory_.is_defined(at, here)) return false;
    block_reads_.push_back({at, here, read.instruction});
    linear += here;
    left -= here;
  }
  return true;
}

/// Tells what ran. False when it has to be taken back.
bool Machine::tell_block(const BlockTemplate& block) {
  ExecutedBlock told{&block, &block_registers_, {}, {}};
  if (tells_accesses_) {
    block_reads_.clear();
    const auto good = [&](const BlockTemplate::Read& read) { return gather_read(read); };
    if (!gather_stores(block) || !std::all_of(block.reads.begin(), block.reads.end(), good)) {
      return false;
    }
    told.stores = std::span(block_stores_).first(stores_told_);
    told.reads = block_reads_;
    if (!sink_->agrees(told, position_)) return false;
    for (const BlockStore& store : told.stores) memory_.mark_defined(store.address, store.size);
  }
  sink_->block(told, position_);
  return true;
}

/// After the engine stopped: back to where the block began.
void Machine::take_block_back() {
  taken_back_ = false;
  for (auto store = block_stores_.rbegin(); store != block_stores_.rend(); ++store) {
    memory_.take_back(store->address, {store->before.data(), store->size});
  }
  block_stores_.clear();
  engine_.write_raw_flags(flags_at_entry_);
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t value =
        block_registers_.value[BlockRegisters::kEntry + static_cast<unsigned>(i)];
    engine_.set_gpr(i, static_cast<std::uint32_t>(value));
  }
  engine_.set_eip(block_begin_ - engine_.segment_base(kCs));
  in_flight_ = false;
  resuming_ = false;
  engine_.step_once();
}

}  // namespace citcat
