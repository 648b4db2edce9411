#include "replay/verify/block_comparison.h"

#include <algorithm>
#include <cstring>

#include "replay/verify/doubts.h"

namespace citcat {

namespace {

/// Writes that may wait while whole blocks are compared: far from where searching for them ends.
constexpr std::size_t kMaxWaiting = 64;

/// Behind a write-back cache, how many iterations of `run` show nothing but their stores, each at
/// its own place, as far as that is known now.
std::uint32_t known_iterations(Comparison& c, const StringIterations& run, Position first) {
  if (run.stored.empty() || !c.cursor.counted()) return 0;
  const auto belongs = [&](const BusTransaction& t) {
    return t.op == BusOp::data_write && !t.has(kWriteBack) && t.has(kPositionKnown) &&
           t.position.instruction == first.instruction;
  };
  while (c.writes.waiting() < kMaxWaiting && c.look_ahead() && belongs(c.cursor.next())) c.pull();
  // A line may be given up before its iteration as well as after it.
  const auto count_before = [&](const BusTransaction& t) {
    if (!t.has(kPositionKnown) || t.position < first) return std::uint32_t{0};
    if (t.position.instruction != first.instruction) return run.count;
    const std::uint32_t ahead = t.position.iteration - first.iteration;
    return std::min(run.count, ahead == 0 ? 0 : ahead - 1);
  };
  std::uint32_t count = run.count;
  if (c.cursor.is_known()) count = std::min(count, count_before(c.cursor.next()));
  if (!c.lines.empty()) count = std::min(count, count_before(c.lines[0].t));
  std::uint32_t bytes = 0;
  for (std::size_t i = 0; i < c.writes.waiting() && bytes < count * run.size; ++i) {
    const BusTransaction& t = c.writes[i].t;
    const Position its{first.instruction, first.iteration + bytes / run.size};
    if (t.position != its) break;
    bytes += t.size;
  }
  return std::min(count, bytes / run.size);
}

constexpr Position kNever{~std::uint64_t{0}, 0};

/// Port accesses read ahead of the memory traffic after them.
constexpr std::size_t kMaxPorts = std::size_t{1} << 16;

}  // namespace

Position BlockComparison::expected() {
  const Position first = first_unsettled();
  // A doubt that is close is looked at instruction by instruction.
  if (c_.doubts != nullptr) expected_ = std::min(first, Position{c_.doubts->next_stretch(), 0});
  return expected_;
}

/// The first place at which the capture shows memory traffic that is not settled. A line may be
/// given up before its instruction as well as after it: it is looked for at both places. What is
/// read is compared at its own.
Position BlockComparison::first_unsettled() {
  expected_ = {};
  // Without a cache every instruction is on the bus.
  if (c_.recording.bus.form == CacheForm::none) return expected_;
  if (c_.beyond || c_.writes.out_of_order()) return expected_;
  while (c_.look_ahead() && !c_.cursor.next().is_memory()) {
    if (c_.ports.waiting() == kMaxPorts) return expected_;
    c_.pull();
  }
  const auto first_read = [&] {
    const bool any = c_.reads != nullptr && c_.reads->due() != nullptr;
    return any ? place_of(*c_.reads->due()) : kNever;
  };
  const auto next = [&] { return c_.cursor.is_known() ? place_of(c_.cursor.next()) : kNever; };
  if (c_.cursor.is_known()) pull_reads_at(std::min(first_read(), next()));
  const Position read = first_read();
  Position other = next();
  if (!c_.writes.empty()) other = std::min(other, place_of(c_.writes[0].t));
  if (!c_.lines.empty()) other = std::min(other, place_of(c_.lines[0].t));
  if (other > read || other == kNever) return expected_ = read;
  return expected_ = c_.write_back ? place_before(other) : other;
}

Position BlockComparison::place_before(Position at) {
  if (at.iteration != 0) {
    --at.iteration;
  } else if (at.instruction != 0) {
    --at.instruction;
  }
  return at;
}

/// Pulls what comes next as long as it is read there, and plain: it shows whether anything else is
/// expected there.
void BlockComparison::pull_reads_at(Position at) {
  const auto belongs = [&](const BusTransaction& t) {
    return place_of(t) == at && t.op != BusOp::data_write && t.has(kPositionKnown) &&
           is_plain(t, at.instruction);
  };
  while (c_.look_ahead() && belongs(c_.cursor.next())) c_.pull();
}

std::uint32_t BlockComparison::may_run(Position first, std::uint32_t most) {
  if (c_.beyond || !c_.cursor.counted() || !c_.starts.empty() || c_.writes.out_of_order()) return 0;
  if (c_.doubts != nullptr && !c_.looks_closely(first)) {
    const std::uint64_t free = c_.doubts->next_stretch() - first.instruction;
    most = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, free));
  }
  if (c_.reads != nullptr && c_.reads->instruction() != first.instruction) c_.follow_reads(first);
  const std::uint32_t count = pull_plain(first.instruction, most);
  if (c_.writes.empty()) return count;
  const std::uint64_t next_write = c_.writes[0].t.position.instruction;
  return next_write < first.instruction ? 0 : count;
}

std::uint32_t BlockComparison::due_within(Position first, std::uint32_t count) const {
  // Elsewhere every store is.
  if (!c_.write_back || count == 0) return count;
  const std::uint64_t end = first.instruction + count;
  std::uint64_t due = c_.reads != nullptr ? c_.reads->last_due_before(end) : 0;
  if (const std::size_t lines = c_.lines.through(end - 1); lines != 0) {
    due = std::max(due, c_.lines[lines - 1].t.position.instruction + 1);
  }
  for (std::size_t i = c_.writes.waiting(); i-- != 0;) {
    const std::uint64_t its = c_.writes[i].t.position.instruction;
    if (its >= end) continue;
    due = std::max(due, its + 1);
    break;
  }
  return due > first.instruction ? static_cast<std::uint32_t>(due - first.instruction) : 0;
}

/// Pulls what belongs to the next `most` instructions, the first number `first`, as long as it is
/// plain, and lines given up just before the one after them, which show what these leave. Of so
/// many, the result, all is known and plain.
std::uint32_t BlockComparison::pull_plain(std::uint64_t first, std::uint32_t most) {
  const std::uint64_t last = first + most - 1;
  const std::uint64_t through = c_.write_back ? last + 1 : last;
  while (!c_.cursor.is_beyond({through, 0})) {
    if (!c_.look_ahead()) return 0;
    const BusTransaction& next = c_.cursor.next();
    const bool counted = next.is_memory() && next.has(kPositionKnown);
    const std::uint64_t at = next.position.instruction;
    const bool repeated = next.is_memory() && next.position.iteration != 0;
    if (!is_plain(next, first)) {
      // What comes before its instruction is known.
      const std::uint64_t margin = c_.write_back ? 1 : 0;
      const bool later = counted && at >= first + margin;
      return later ? static_cast<std::uint32_t>(std::min<std::uint64_t>(at - first - margin, most))
                   : 0;
    }
    if (repeated && at <= last) return static_cast<std::uint32_t>(at - first);
    if (repeated && at == through) return most;
    c_.pull();
  }
  return most;
}

bool BlockComparison::is_plain(const BusTransaction& t, std::uint64_t first) const {
  if (t.is_memory() && (!t.has(kPositionKnown) || t.position.instruction < first)) return false;
  switch (t.op) {
    case BusOp::code_read:
      return true;
    case BusOp::data_read:
      return !t.has(kUncacheable) || !reads_back(t);
    case BusOp::data_write:
      if (c_.write_back && t.has(kWriteBack)) return true;
      return !t.has(kWriteBack) && c_.writes.waiting() < kMaxWaiting;
    case BusOp::io_read:
    case BusOp::io_write:
    case BusOp::interrupt_acknowledge:
      return true;
    default:
      return false;
  }
}

/// What was written there as to a device counts as memory from this read on: the read has its place
/// among the writes.
bool BlockComparison::reads_back(const BusTransaction& t) const {
  for (std::size_t i = 0; i < c_.writes.waiting(); ++i) {
    const BusTransaction& w = c_.writes[i].t;
    if (overlap(w.address, w.size, t.address, t.size)) return true;
  }
  return c_.final_memory.is_device(t);
}

/// Close to a doubt: nothing that has to be followed from store to store. What may be an image of
/// EFLAGS is stored instruction by instruction, and so is what goes over bits that no manual tells.
bool BlockComparison::needs_no_following(const JudgedBlock& block) const {
  const std::uint32_t eflags = c_.machine->engine().system_flags();
  return std::none_of(block.stores.begin(), block.stores.end(), [&](const BlockStore& store) {
    return c_.undefined.may_be_image(store.bytes(), eflags) ||
           c_.undefined.is_near(store.address, store.size);
  });
}

bool BlockComparison::agrees(const JudgedBlock& block, Position first) {
  if (c_.doubts != nullptr && c_.looks_closely(first) && !needs_no_following(block)) return false;
  if (!stores_agree(block, first.instruction)) return false;
  const BlockMemory after(block, c_.memory());
  return (c_.reads == nullptr || c_.reads->agrees(block, first.instruction, after)) &&
         lines_agree(block, first.instruction, after);
}

/// Every store on the bus, in its order, its parts from below; behind a write-back cache those that
/// the bus shows.
bool BlockComparison::stores_agree(const JudgedBlock& block, std::uint64_t first) {
  writes_made_ = 0;
  const WriteMatcher& writes = c_.writes;
  for (const BlockStore& store : block.stores) {
    if (c_.write_back && !is_shown(store, first + store.instruction)) continue;
    for (std::uint32_t done = 0; done < store.size; ++writes_made_) {
      if (writes_made_ == writes.waiting()) return false;
      const WriteMatcher::Pending& w = writes[writes_made_];
      if (w.t.address != store.address.plus32(done) || w.t.size > store.size - done ||
          !w.is_whole() || w.t.position.instruction != first + store.instruction ||
          std::memcmp(w.t.data.data(), &store.value[done], w.t.size) != 0) {
        return false;
      }
      if (done == 0 && w.t.size != store.size)
        c_.stores_order.note_upward(store.address, store.size);
      done += w.t.size;
    }
  }
  return writes_made_ == writes.waiting() ||
         writes[writes_made_].t.position.instruction >= first + block.count();
}

/// Whether a write that waits is of this instruction and goes where it stores.
bool BlockComparison::is_shown(const BlockStore& store, std::uint64_t instruction) const {
  for (std::size_t i = writes_made_; i < c_.writes.waiting(); ++i) {
    const BusTransaction& t = c_.writes[i].t;
    if (t.position.instruction > instruction) return false;
    if (t.position.instruction == instruction &&
        overlap(store.address, store.size, t.address, t.size)) {
      return true;
    }
  }
  return false;
}

bool BlockComparison::lines_agree(const JudgedBlock& block, std::uint64_t first,
                                  const BlockMemory& after) const {
  const std::size_t made = c_.lines.through(first + block.count() - 1);
  for (std::size_t i = 0; i < made; ++i) {
    const Position at = c_.lines[i].t.position;
    if (at.instruction < first || at.iteration != 0) return false;
    const auto instruction = static_cast<std::uint32_t>(at.instruction - first);
    if (!line_agrees(block, c_.lines[i], instruction, after)) return false;
  }
  return true;
}

/// Whether memory was what the line shows just before the instruction, or else just after it.
bool BlockComparison::line_agrees(const JudgedBlock& block, const LineMatcher::Pending& line,
                                  std::uint32_t instruction, const BlockMemory& after) {
  if (after.holds(line.t.address, line.t.bytes(), line.unmatched)) return true;
  std::uint32_t unmatched = line.unmatched;
  const auto compare = [&](std::uint32_t at) {
    for (std::uint32_t i = 0; i < line.t.size; ++i) {
      if ((unmatched >> i & 1) == 0) continue;
      const BlockMemory::Byte byte = after.byte_before(at, line.t.address.plus32(i));
      const bool known = byte.state == BlockMemory::Byte::State::known;
      if (known && byte.value == line.t.data[i]) unmatched &= ~(1u << i);
    }
    return unmatched == 0;
  };
  if (compare(instruction)) return true;
  // With several stores to the line it matters after which one the line was given up.
  const auto stores = JudgedBlock::of_instruction(block.stores, instruction);
  return stores.size() == 1 && compare(instruction + 1);
}

void BlockComparison::agreed(const JudgedBlock& block, Position first) {
  const std::uint64_t last = first.instruction + block.count() - 1;
  if (c_.reads != nullptr) c_.result.totals.reads = c_.reads->pass_block(last);
  take_writes(writes_made_);
  if (!c_.write_back) return;
  const std::size_t made = c_.lines.through(last);
  for (std::size_t i = 0; i < made; ++i) c_.line_agreed(c_.lines[i]);
  c_.lines.drop_front(made);
  if (!c_.lines.empty()) c_.check_lines({last + 1, 0});
}

/// So many that wait, the first ones, agree.
void BlockComparison::take_writes(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) c_.write_agreed(c_.writes[i].t);
  c_.writes.drop_front(count);
}

// ---------------------------------------------------------------------------------------------
// Iterations of repeated strings, compared many at a time where each of their stores is on the bus:
// those of a processor without a write-back cache, and of any to where there is no memory to keep.
// The iteration after that is told alone.

std::uint32_t BlockComparison::agreed_iterations(const StringIterations& run, Position first) {
  if (!may_take_iterations(first)) return 0;
  StringIterations taken = run;
  if (c_.write_back) {
    taken.count = known_iterations(c_, run, first);
    if (taken.count == 0) return 0;
  }
  ReadMatcher& reads = *c_.reads;
  reads.reach(first.iteration);
  taken.count = reads.plain_iterations(taken, c_.memory());
  std::size_t writes = 0;
  if (!run.stored.empty()) writes = count_stores(taken, first.instruction);
  if (taken.count == 0) return 0;
  reads.pass_iterations(taken, c_.memory());
  take_writes(writes);
  return taken.count;
}

/// Iterations before `first` have been compared, all that the bus shows of the instruction is
/// known, and so is what of it belongs to which iteration.
bool BlockComparison::may_take_iterations(Position first) const {
  if (c_.doubts != nullptr && c_.looks_closely(first)) return false;
  if (!c_.plain || c_.beyond || c_.reads == nullptr || c_.writes.out_of_order() ||
      !c_.starts.empty() || first.instruction == c_.interrupted) {
    return false;
  }
  if (c_.reads->instruction() != first.instruction) return false;
  return c_.write_back || c_.cursor.is_beyond(first);
}

/// How many writes show what iterations of `run` store, one after another; these remain in it.
std::size_t BlockComparison::count_stores(StringIterations& run, std::uint64_t instruction) const {
  const std::uint32_t most = run.count * run.size;
  std::uint32_t done = 0;
  std::size_t writes = 0;
  run.count = 0;
  for (std::size_t i = 0; i < c_.writes.waiting() && done < most; ++i) {
    const WriteMatcher::Pending& w = c_.writes[i];
    const bool next = w.t.position.instruction == instruction && w.t.address == run.to.plus32(done);
    if (!next || !w.is_whole() || w.t.size > most - done ||
        std::memcmp(w.t.data.data(), &run.stored[done], w.t.size) != 0) {
      break;
    }
    done += w.t.size;
    if (done % run.size != 0) continue;
    run.count = done / run.size;
    writes = i + 1;
  }
  return writes;
}

}  // namespace citcat
