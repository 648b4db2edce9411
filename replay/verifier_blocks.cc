// What ran as a block, compared as a whole.
//
// Taken is only what instruction by instruction would be found right without a doubt; everything
// else is refused, made again and judged there (Machine::take_block_back()). Transactions may have
// been pulled for a whole block before: nothing looks at those of later instructions.

#include <algorithm>
#include <cstring>

#include "replay/verifier.h"

namespace citcat {

namespace {

/// Flags that belong to the system and that no instruction of a block changes but IF: TF, IOPL, NT,
/// AC (Intel SDM vol. 1, 3.4.3).
constexpr std::uint32_t kSystemFlags = 0x47100, kInterruptFlag = 0x200;

/// Writes that may wait while whole blocks are compared: far from where searching for them ends.
constexpr std::size_t kMostWaiting = 64;

}  // namespace

/// Blocks can be compared where the monitor counts the traffic, and a cache keeps most of it off
/// the bus.
Detail Verifier::detail() const {
  const bool whole_addresses = recording_.bus.address_mask == 0xffffffff;
  const bool counted = recording_.instructions && recording_.totals.instruction_starts == 0;
  const bool cached = recording_.bus.form != CacheForm::none;
  const bool possible = whole_addresses && counted && cached;
  return options_.by_blocks && possible ? Detail::block_accesses : Detail::accesses;
}

bool Verifier::may_run_block(Position first, std::uint32_t count) {
  if (beyond_ || !counted_ || !starts_.empty() || out_of_order_) return false;
  if (reads_ != nullptr && reads_->instruction() != first.instruction) follow_reads(first);
  const std::uint64_t last = first.instruction + count - 1;
  const bool write_back = recording_.bus.form == CacheForm::write_back;
  if (!pull_plain(write_back ? last + 1 : last, first.instruction)) return false;
  if (writes_.empty()) return true;
  const std::uint64_t next_write = writes_.front().t.position.instruction;
  return next_write >= first.instruction && (!write_back || next_write > last);
}

/// Pulls what belongs to instructions up to `through`, as long as it is plain. `first` is the next
/// instruction.
bool Verifier::pull_plain(std::uint64_t through, std::uint64_t first) {
  while (!has_position_beyond({through, 0})) {
    if (!look_ahead() || !is_plain(*ahead_, through, first)) return false;
    pull();
  }
  return true;
}

bool Verifier::is_plain(const BusTransaction& t, std::uint64_t through, std::uint64_t first) const {
  if (t.is_memory()) {
    if (!t.has(kPositionKnown) || t.position.instruction < first) return false;
    if (t.position.iteration != 0 && t.position.instruction <= through) return false;
  }
  switch (t.op) {
    case BusOp::code_read:
    case BusOp::data_read:
      return !t.has(kUncacheable) || device_bytes_.empty();
    case BusOp::data_write:
      if (recording_.bus.form != CacheForm::write_back) {
        return !t.has(kWriteBack) && writes_.size() < kMostWaiting;
      }
      return t.has(kWriteBack) || t.position.instruction > through;
    case BusOp::io_read:
    case BusOp::io_write:
    case BusOp::interrupt_acknowledge:
      return true;
    default:
      return false;
  }
}

bool Verifier::agrees(const ExecutedBlock& block, Position first) {
  return flags_agree(block) && stores_agree(block, first.instruction) &&
         (reads_ == nullptr || reads_->agrees(block, first.instruction, machine_->memory())) &&
         lines_agree(block, first.instruction);
}

/// Finds the bits of each store that no manual tells.
bool Verifier::flags_agree(const ExecutedBlock& block) {
  const std::uint32_t system = machine_->engine().system_flags();
  const std::uint32_t known =
      kSystemFlags | (block.code->changes_interrupt_flag ? 0 : kInterruptFlag);
  store_bits_.assign(block.stores.size(), 0);
  for (std::size_t i = 0; i < block.stores.size(); ++i) {
    const BlockStore& store = block.stores[i];
    if (store.size != 4 && store.size != 2) continue;
    std::uint32_t value = 0;
    std::memcpy(&value, store.value.data(), store.size);
    const std::uint32_t mask = store.size == 4 ? 0xffffffff : 0xffff;
    const auto bits = flags_.undefined_in_store(
        value, block.code->stores[store.number].flags_before, system, known & mask);
    if (!bits) return false;
    store_bits_[i] = *bits;
  }
  return true;
}

/// Every store on the bus, in its order, or none of them.
bool Verifier::stores_agree(const ExecutedBlock& block, std::uint64_t first) {
  writes_made_ = 0;
  const auto overlaps = [](const BlockStore& store, const BusTransaction& t) {
    return t.address.value - store.address.value < store.size ||
           store.address.value - t.address.value < t.size;
  };
  if (recording_.bus.form == CacheForm::write_back) {
    return std::none_of(writes_.begin(), writes_.end(), [&](const PendingWrite& w) {
      return std::any_of(block.stores.begin(), block.stores.end(),
                         [&](const BlockStore& store) { return overlaps(store, w.t); });
    });
  }
  for (const BlockStore& store : block.stores) {
    std::uint32_t left = (1u << store.size) - 1;
    while (left != 0) {
      if (writes_made_ == writes_.size()) return false;
      const PendingWrite& w = writes_[writes_made_];
      const std::uint32_t offset = w.t.address.value - store.address.value;
      if (offset >= store.size || store.size - offset < w.t.size) return false;
      const std::uint32_t bytes = ((1u << w.t.size) - 1) << offset;
      const std::uint64_t instruction = first + block.code->stores[store.number].instruction;
      if ((left & bytes) != bytes || w.unmatched != (1u << w.t.size) - 1 ||
          w.t.position.instruction != instruction ||
          std::memcmp(w.t.data.data(), &store.value[offset], w.t.size) != 0) {
        return false;
      }
      left &= ~bytes;
      ++writes_made_;
    }
  }
  return writes_made_ == writes_.size() ||
         writes_[writes_made_].t.position.instruction >= first + block.count();
}

/// How many of lines_ were given up by instructions up to this one.
std::size_t Verifier::lines_through(std::uint64_t instruction) const {
  std::size_t n = 0;
  while (n < lines_.size() && lines_[n].t.position.instruction <= instruction) ++n;
  return n;
}

bool Verifier::lines_agree(const ExecutedBlock& block, std::uint64_t first) {
  lines_before_.clear();
  const std::size_t count = lines_through(first + block.count() - 1);
  if (count == 0) return true;
  if (!specific_bytes_.empty() && overwrites_specific(block)) return false;
  for (std::size_t i = 0; i < count; ++i) {
    const Position at = lines_[i].t.position;
    if (at.instruction < first || at.iteration != 0) return false;
    bool before = true;
    if (!line_agrees(block, lines_[i], static_cast<std::uint32_t>(at.instruction - first),
                     before)) {
      return false;
    }
    lines_before_.push_back(before);
  }
  return true;
}

/// The block stores where there are bits that no manual tells: what a line shows of them may be
/// excused.
bool Verifier::overwrites_specific(const ExecutedBlock& block) const {
  return std::any_of(block.stores.begin(), block.stores.end(), [&](const BlockStore& store) {
    return specific_lines_.contains(LineSet::line_of(store.address.value)) ||
           specific_lines_.contains(LineSet::line_of(store.address.value + store.size - 1));
  });
}

/// Whether memory was what the line shows just `before` the instruction, or else just after it.
bool Verifier::line_agrees(const ExecutedBlock& block, const PendingLine& line,
                           std::uint32_t instruction, bool& before) const {
  const BlockMemory memory(block, machine_->memory());
  if (memory.holds(line.t.address, line.t.bytes(), line.unmatched)) return true;
  std::uint32_t unmatched = line.unmatched;
  const auto compare = [&](std::uint32_t at) {
    for (std::uint32_t i = 0; i < line.t.size; ++i) {
      if ((unmatched >> i & 1) == 0) continue;
      if (memory.byte_before(at, line.t.address + i) == line.t.data[i]) unmatched &= ~(1u << i);
    }
    return unmatched == 0;
  };
  before = compare(instruction);
  if (before) return true;
  // Of several stores to the line it matters after which of them it was given up.
  const auto stores =
      std::count_if(block.stores.begin(), block.stores.end(), [&](const BlockStore& store) {
        return block.code->stores[store.number].instruction == instruction;
      });
  return stores == 1 && compare(instruction + 1);
}

void Verifier::block(const ExecutedBlock& block, Position first) {
  const std::uint64_t last = first.instruction + block.count() - 1;
  if (reads_ != nullptr) totals_.reads = reads_->pass_block(last);
  if (recording_.bus.form == CacheForm::write_back) {
    take_lines(block, first.instruction);
    check_lines({last + 1, 0});
  } else {
    for (std::size_t i = 0; i < writes_made_; ++i) write_agreed(writes_[i].t);
    writes_.erase(writes_.begin(), writes_.begin() + static_cast<std::ptrdiff_t>(writes_made_));
  }
  flags_.completed(block.code->flags);
  const BlockTemplate& code = *block.code;
  note_branch(code.key.linear, code.key.linear - code.key.code_base);
  branches_.next_linear = code.end();
  branches_.after_branch = code.instructions.back().info.control_flow;
}

/// Stores, and lines given up between them, in their order.
void Verifier::take_lines(const ExecutedBlock& block, std::uint64_t first) {
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < lines_before_.size();) {
    const std::uint64_t at = lines_[i].t.position.instruction;
    const auto instruction = static_cast<std::uint32_t>(at - first);
    std::size_t end = i;
    while (end < lines_before_.size() && lines_[end].t.position.instruction == at) ++end;
    for (const bool before : {true, false}) {
      take_stores(block, instruction + (before ? 0 : 1), next);
      for (std::size_t line = i; line < end; ++line) {
        if (lines_before_[line] == before) line_agreed(lines_[line].t);
      }
    }
    i = end;
  }
  lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(lines_before_.size()));
  take_stores(block, block.count(), next);
}

/// Stores from number `next` on that instructions before `end` made.
void Verifier::take_stores(const ExecutedBlock& block, std::uint32_t end, std::uint32_t& next) {
  for (; next < block.stores.size(); ++next) {
    const BlockStore& store = block.stores[next];
    if (block.code->stores[store.number].instruction >= end) return;
    const std::uint32_t line = LineSet::line_of(store.address.value);
    const std::uint32_t last = LineSet::line_of(store.address.value + store.size - 1);
    unconfirmed_lines_.insert(line);
    if (last != line) unconfirmed_lines_.insert(last);
    const bool specific = !specific_bytes_.empty() &&
                          (specific_lines_.contains(line) || specific_lines_.contains(last));
    if (!specific && store_bits_[next] == 0) continue;
    for (std::uint32_t i = 0; i < store.size; ++i) {
      set_specific(store.address + i, static_cast<std::uint8_t>(store_bits_[next] >> 8 * i),
                   store.value[i]);
    }
  }
}

}  // namespace citcat
