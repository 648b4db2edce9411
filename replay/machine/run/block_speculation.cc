#include "replay/machine/run/block_speculation.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace citcat {

namespace {

/// `wanted`: as of reads_of_interest.
bool is_wanted(const BlockTemplate::Access& read, std::uint64_t wanted) {
  return (wanted >> std::min<unsigned>(read.instruction, 63) & 1) != 0;
}

}  // namespace

/// Keeps account of what `block`, which ran, has made defined and undefined.
void BlockSpeculation::note_accesses(const BlockTemplate& block) {
  expectation_.untold_flags = expectation_.untold_flags + block.flag_effect(cpu_.engine.gpr(kEcx));
  std::uint64_t mark = lines_mark();
  for (const BlockTemplate::Access& a : block.accesses) {
    const std::uint32_t linear = a.linear(running_.registers);
    if (defined_lines_.hold(linear, a.size, mark)) continue;
    note_access(linear, a);
    mark = lines_mark();
  }
}

void BlockSpeculation::note_access(std::uint32_t linear, const BlockTemplate::Access& a) {
  for (std::uint32_t left = a.size; left != 0;) {
    const std::uint32_t here =
        std::min(left, DefinedLines::kBytes - DefinedLines::offset_in(linear));
    const Access access = a.write ? Access::write : Access::read;
    const auto known = cpu_.mmu.translate_quietly(LinearAddr{linear}, access, cpu_.user_mode());
    if (!known) throw UndefinedMemory{PhysAddr{linear}, here, "page of an access"};
    const PhysAddr at = known->frame + (linear & kPageMask);
    if (a.write) cpu_.memory.mark_defined(at, here);
    if (!cpu_.memory.is_defined(at, here)) throw UndefinedMemory{at, here, "data"};
    note_defined(linear, at);
    linear += here;
    left -= here;
  }
}

/// Something at `linear`, which is at `at`, is defined: perhaps all of its line is.
void BlockSpeculation::note_defined(std::uint32_t linear, PhysAddr at) {
  const PhysAddr line{DefinedLines::begin_of(at.value)};
  if (cpu_.memory.is_defined(line, DefinedLines::kBytes))
    defined_lines_.add(linear, at, lines_mark());
}

bool BlockSpeculation::may_tell(const BlockTemplate& block) {
  return cpu_.position.instruction >= careful_until_ &&
         expectation_.judge->may_run_block(cpu_.position, block.whole_count);
}

/// Finds where `block` is going to store, from the registers it finds. False where that cannot be
/// told, or its stores could not be told apart afterwards.
bool BlockSpeculation::find_stores(const BlockTemplate& block) {
  block_stores_.clear();
  for (const BlockTemplate::Access& store : block.accesses) {
    if (!store.write) continue;
    std::uint32_t linear = store.linear(running_.registers);
    if (defined_lines_.hold(linear, store.size, lines_mark())) {
      const PhysAddr at = defined_lines_.physical(linear);
      if (!add_store({at, store.size, store.instruction, true})) return false;
      continue;
    }
    for (std::uint32_t left = store.size; left != 0;) {
      const std::uint32_t here = std::min(left, kPageSize - (linear & kPageMask));
      const auto known =
          cpu_.mmu.translate_quietly(LinearAddr{linear}, Access::write, cpu_.user_mode());
      if (!known || !cpu_.memory.is_mapped(known->frame.page())) return false;
      const PhysAddr at = known->frame + (linear & kPageMask);
      if (!add_store({at, here, store.instruction, false})) return false;
      linear += here;
      left -= here;
    }
  }
  return true;
}

/// One of the stores found so far goes there.
bool BlockSpeculation::is_stored(PhysAddr at, std::uint32_t size) const {
  return std::any_of(block_stores_.begin(), block_stores_.end(), [&](const BlockStore& store) {
    return overlap(store.address, store.size, at, size);
  });
}

bool BlockSpeculation::add_store(const BlockStore& store) {
  if (expectation_.expects_stores && is_stored(store.address, store.size)) return false;
  block_stores_.push_back(store);
  return true;
}

/// Saves what the block is going to overwrite.
void BlockSpeculation::save_overwritten() {
  for (BlockStore& store : block_stores_) copy_out(store.address, store.size, store.before);
}

/// Whether everything expected of `block` can be seen to be right before it runs: then nothing need
/// be saved for it, nor found out behind it. False where it takes running the block to know.
bool BlockSpeculation::agrees_ahead(const BlockTemplate& block) {
  if (!expectation_.looks_ahead || (expectation_.expects_stores && block.stores)) return false;
  block_reads_.clear();
  const std::uint64_t wanted = expectation_.judge->reads_of_interest(cpu_.position);
  for (const BlockTemplate::Access& read : block.accesses) {
    if (read.write || !is_wanted(read, wanted)) continue;
    if (read.needs_exit) return false;
    // It may not come to this access: no page is looked up for it.
    const LinearAddr first{read.linear(running_.registers)}, last = first + (read.size - 1u);
    if (!cpu_.is_held(first, Access::read) || !cpu_.is_held(last, Access::read)) return false;
    if (!gather_read(read, first.value)) return false;
  }
  return expectation_.judge->agrees({&block, block_stores_, block_reads_, true}, cpu_.position);
}

/// Copies `size` bytes, of which at most all of `to`, and what else there is room for.
void BlockSpeculation::copy_out(PhysAddr at, std::uint32_t size,
                                std::array<std::uint8_t, 8>& to) const {
  const std::uint8_t* const from = cpu_.memory.host(at);
  if (at.offset_in_page() <= kPageSize - to.size()) {
    std::memcpy(to.data(), from, to.size());
  } else {
    std::copy_n(from, size, to.begin());
  }
}

/// Stores from the one at `first` on belong to instructions that did not complete: whether these
/// left memory alone. The processor finds out before it stores anything.
bool BlockSpeculation::left_no_traces(std::size_t first) const {
  return std::all_of(block_stores_.begin() + static_cast<std::ptrdiff_t>(first),
                     block_stores_.end(), [&](const BlockStore& store) {
                       return std::memcmp(cpu_.memory.host(store.address), store.before.data(),
                                          store.size) == 0;
                     });
}

/// Finds the stores that the instructions of `block` made.
bool BlockSpeculation::gather_stores(const BlockTemplate& block) {
  stores_told_ = 0;
  while (stores_told_ < block_stores_.size() &&
         block_stores_[stores_told_].instruction < block.count()) {
    BlockStore& store = block_stores_[stores_told_++];
    copy_out(store.address, store.size, store.value);
  }
  return left_no_traces(stores_told_);
}

bool BlockSpeculation::gather_read(const BlockTemplate::Access& read, std::uint32_t linear) {
  if (defined_lines_.hold(linear, read.size, lines_mark())) {
    block_reads_.push_back({defined_lines_.physical(linear), read.size, read.instruction});
    return true;
  }
  for (std::uint32_t left = read.size; left != 0;) {
    const std::uint32_t here = std::min(left, kPageSize - (linear & kPageMask));
    const auto known =
        cpu_.mmu.translate_quietly(LinearAddr{linear}, Access::read, cpu_.user_mode());
    if (!known) return false;
    const PhysAddr at = known->frame + (linear & kPageMask);
    const bool stored = is_stored(at, here);
    // Of what the block itself stores, only instruction by instruction shows what was there before.
    if (!cpu_.memory.is_defined(at, here) && !stored) return false;
    if (!stored) note_defined(linear, at);
    block_reads_.push_back({at, here, read.instruction});
    linear += here;
    left -= here;
  }
  return true;
}

/// Tells what ran to the judge. False when it has to be taken back.
bool BlockSpeculation::tell_accesses(const BlockTemplate& block) {
  block_reads_.clear();
  const std::uint64_t wanted = expectation_.judge->reads_of_interest(cpu_.position);
  const auto good = [&](const BlockTemplate::Access& read) {
    if (read.write) return true;
    const std::uint32_t linear = read.linear(running_.registers);
    const bool defined = defined_lines_.hold(linear, read.size, lines_mark());
    return (defined && !is_wanted(read, wanted)) || gather_read(read, linear);
  };
  if (!gather_stores(block) || !std::all_of(block.accesses.begin(), block.accesses.end(), good)) {
    return false;
  }
  const JudgedBlock told{&block, std::span(block_stores_).first(stores_told_), block_reads_};
  if (!expectation_.judge->agrees(told, cpu_.position)) return false;
  for (const BlockStore& store : told.stores) {
    if (!store.was_defined) cpu_.memory.mark_defined(store.address, store.size);
  }
  expectation_.judge->agreed(told, cpu_.position);
  expectation_.untold_flags = expectation_.untold_flags + block.flag_effect(cpu_.engine.gpr(kEcx));
  return true;
}

bool BlockSpeculation::tell(const BlockTemplate& block) {
  if (expectation_.block_compared && running_.speculated) {
    expectation_.judge->agreed({&block, {}, {}, true}, cpu_.position);
  } else if (expectation_.block_compared && !tell_accesses(block)) {
    return false;
  }
  tell_unasked(block);
  return true;
}

void BlockSpeculation::roll_back() {
  ++cpu_.stats.rolled_back;
  running_.rolled_back = false;
  for (const BlockStore& store : block_stores_) {
    cpu_.memory.take_back(store.address, {store.before.data(), store.size});
  }
  block_stores_.clear();
  cpu_.engine.write_raw_flags(flags_at_entry_);
  for (int i = 0; i < 8; ++i) {
    const std::uint64_t value =
        running_.registers.value[BlockRegisters::kEntry + static_cast<unsigned>(i)];
    cpu_.engine.set_gpr(i, static_cast<std::uint32_t>(value));
  }
  cpu_.engine.set_eip(block_begin_ - cpu_.engine.segment_base(kCs));
  flight_.active = false;
  flight_.resuming = false;
  cpu_.engine.step_once();
}

bool BlockSpeculation::foresees(const BlockTemplate& block) {
  if (!find_stores(block)) return false;
  running_.speculated = agrees_ahead(block);
  if (running_.speculated) return true;
  cpu_.engine.read_raw_flags(flags_at_entry_);
  block_begin_ = block.key.linear;
  save_overwritten();
  return true;
}

}  // namespace citcat
