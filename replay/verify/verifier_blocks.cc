// What ran as a block, compared as a whole.
//
// Taken is only what instruction by instruction would be found right without a doubt; everything
// else is refused, made again and judged there (Machine::roll_block_back()). Transactions may have
// been pulled for a whole block before: nothing looks at those of later instructions.

#include <algorithm>
#include <cstring>

#include "replay/verify/verifier.h"

namespace citcat {

namespace {

/// Writes that may wait while whole blocks are compared: far from where searching for them ends.
constexpr std::size_t kMaxWaiting = 64;

constexpr Position kNever{~std::uint64_t{0}, 0};

/// Port accesses read ahead of the memory traffic behind them.
constexpr std::size_t kMaxPorts = std::size_t{1} << 16;

}  // namespace

/// Blocks can be compared where the monitor counts the traffic.
bool Verifier::allows_blocks() const {
  const bool whole_addresses = recording_.bus.address_mask == 0xffffffff;
  const bool counted = recording_.instructions && recording_.totals.instruction_starts == 0;
  return whole_addresses && counted;
}

Detail Verifier::detail() const { return plain_ ? Detail::comparison : Detail::accesses; }

/// The first place at which the capture shows memory traffic that is not settled. A line may be
/// given up before its instruction as well as after it: it is looked for at both places. What is
/// read is compared at its own.
Position Verifier::expected() {
  expected_ = {};
  if (recording_.bus.form == CacheForm::none) return expected_;  // every instruction is on the bus
  if (beyond_ || out_of_order_) return expected_;
  while (look_ahead() && !ahead_->is_memory()) {
    if (ports_.waiting() == kMaxPorts) return expected_;
    pull();
  }
  const auto first_read = [&] {
    const bool any = reads_ != nullptr && reads_->first_pending() != nullptr;
    return any ? place_of(*reads_->first_pending()) : kNever;
  };
  if (ahead_) pull_reads_at(std::min(first_read(), place_of(*ahead_)));
  const Position read = first_read();
  Position other = ahead_ ? place_of(*ahead_) : kNever;
  if (!writes_.empty()) other = std::min(other, place_of(writes_.front().t));
  if (!lines_.empty()) other = std::min(other, place_of(lines_.front().t));
  if (other > read || other == kNever) return expected_ = read;
  const bool may_be_before = recording_.bus.form == CacheForm::write_back;
  return expected_ = may_be_before ? place_before(other) : other;
}

Position Verifier::place_before(Position at) {
  if (at.iteration != 0) {
    --at.iteration;
  } else if (at.instruction != 0) {
    --at.instruction;
  }
  return at;
}

/// Pulls what comes next as long as it is read there, and plain: it shows whether anything else is
/// expected there.
void Verifier::pull_reads_at(Position at) {
  while (look_ahead() && place_of(*ahead_) == at && ahead_->op != BusOp::data_write &&
         ahead_->has(kPositionKnown) && is_plain(*ahead_, at.instruction, at.instruction)) {
    pull();
  }
}

bool Verifier::may_run_block(Position first, std::uint32_t count) {
  if (beyond_ || !counted_ || !starts_.empty() || out_of_order_) return false;
  if (reads_ != nullptr && reads_->instruction() != first.instruction) follow_reads(first);
  const std::uint64_t last = first.instruction + count - 1;
  if (!pull_plain(first.instruction, last)) return false;
  if (writes_.empty()) return true;
  const bool write_back = recording_.bus.form == CacheForm::write_back;
  const std::uint64_t next_write = writes_.front().t.position.instruction;
  return next_write >= first.instruction && (!write_back || next_write > last);
}

/// Pulls what belongs to instructions up to `last`, as long as it is plain, and lines given up just
/// before the one behind that, which show what these leave. `first` is the next instruction.
bool Verifier::pull_plain(std::uint64_t first, std::uint64_t last) {
  const std::uint64_t through = recording_.bus.form == CacheForm::write_back ? last + 1 : last;
  while (!has_position_beyond({through, 0})) {
    if (!look_ahead() || !is_plain(*ahead_, first, through)) return false;
    const bool repeated = ahead_->is_memory() && ahead_->position.iteration != 0;
    if (repeated && ahead_->position.instruction <= last) return false;
    if (repeated && ahead_->position.instruction == through) return true;
    pull();
  }
  return true;
}

bool Verifier::is_plain(const BusTransaction& t, std::uint64_t first, std::uint64_t through) const {
  if (t.is_memory() && (!t.has(kPositionKnown) || t.position.instruction < first)) return false;
  switch (t.op) {
    case BusOp::code_read:
    case BusOp::data_read:
      return !t.has(kUncacheable) || !final_memory_.has_devices();
    case BusOp::data_write:
      if (recording_.bus.form != CacheForm::write_back) {
        return !t.has(kWriteBack) && writes_.size() < kMaxWaiting;
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

std::uint64_t Verifier::reads_of_interest(Position first) const {
  return reads_ != nullptr ? reads_->pending_data(first.instruction) : 0;
}

bool Verifier::agrees(const ExecutedBlock& block, Position first) {
  return stores_agree(block, first.instruction) &&
         (reads_ == nullptr || reads_->agrees(block, first.instruction, machine_->memory())) &&
         lines_agree(block, first.instruction);
}

/// Every store on the bus, in its order, or none of them.
bool Verifier::stores_agree(const ExecutedBlock& block, std::uint64_t first) {
  writes_made_ = 0;
  if (recording_.bus.form == CacheForm::write_back) {
    return std::none_of(writes_.begin(), writes_.end(), [&](const PendingWrite& w) {
      return std::any_of(block.stores.begin(), block.stores.end(), [&](const BlockStore& store) {
        return overlap(store.address, store.size, w.t.address, w.t.size);
      });
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
      const std::uint64_t instruction = first + store.instruction;
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

bool Verifier::lines_agree(const ExecutedBlock& block, std::uint64_t first) const {
  const std::size_t made = lines_through(first + block.count() - 1);
  for (std::size_t i = 0; i < made; ++i) {
    const Position at = lines_[i].t.position;
    if (at.instruction < first || at.iteration != 0) return false;
    if (!line_agrees(block, lines_[i], static_cast<std::uint32_t>(at.instruction - first))) {
      return false;
    }
  }
  return true;
}

/// Whether memory was what the line shows just before the instruction, or else just after it.
bool Verifier::line_agrees(const ExecutedBlock& block, const PendingLine& line,
                           std::uint32_t instruction) const {
  const BlockMemory memory(block, machine_->memory());
  if (memory.holds(line.t.address, line.t.bytes(), line.unmatched)) return true;
  std::uint32_t unmatched = line.unmatched;
  const auto compare = [&](std::uint32_t at) {
    for (std::uint32_t i = 0; i < line.t.size; ++i) {
      if ((unmatched >> i & 1) == 0) continue;
      const BlockMemory::Byte byte = memory.byte_before(at, line.t.address + i);
      const bool known = byte.state == BlockMemory::Byte::State::known;
      if (known && byte.value == line.t.data[i]) unmatched &= ~(1u << i);
    }
    return unmatched == 0;
  };
  if (compare(instruction)) return true;
  // Of several stores to the line it matters after which of them it was given up.
  const auto stores =
      std::count_if(block.stores.begin(), block.stores.end(),
                    [&](const BlockStore& store) { return store.instruction == instruction; });
  return stores == 1 && compare(instruction + 1);
}

void Verifier::agreed(const ExecutedBlock& block, Position first) {
  const std::uint64_t last = first.instruction + block.count() - 1;
  if (reads_ != nullptr) result_.totals.reads = reads_->pass_block(last);
  if (recording_.bus.form == CacheForm::write_back) {
    const std::size_t made = lines_through(last);
    for (std::size_t i = 0; i < made; ++i) line_agreed(lines_[i].t, lines_[i].parts);
    lines_.drop_front(made);
    if (!lines_.empty()) check_lines({last + 1, 0});
  } else {
    for (std::size_t i = 0; i < writes_made_; ++i) write_agreed(writes_[i].t);
    writes_.drop_front(writes_made_);
  }
}

}  // namespace citcat
