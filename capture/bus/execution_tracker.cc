#include "capture/bus/execution_tracker.h"

#include "capture/bus/early_instructions.h"
#include "capture/bus/hex.h"
#include "events/machine/code_fetch.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// An acknowledge reads four vector bytes and pushes six; nothing but prefetches comes between.
constexpr std::uint32_t kRealVectorBytes = 4;
// So many instructions whose bytes differ from their encoding are no accident any more.
constexpr std::uint64_t kOddLengthLimit = 16;
constexpr std::size_t kQueueOf8088 = 4;

}  // namespace

void ExecutionTracker::fail(std::uint64_t clock, const std::string& message) const {
  throw FormatError(setup_.name, clock, message + setup_.advice);
}

std::uint64_t ExecutionTracker::push(const BusTransaction& transaction, bool ready) {
  Item& last = items_.emplace_back();
  last.transaction = transaction;
  last.ready = ready;
  return first_item_ + items_.size() - 1;
}

bool ExecutionTracker::take(BusTransaction& out) {
  if (items_.empty() || !items_.front().ready) return false;
  out = items_.front().transaction;
  out.index = emitted_++;
  items_.pop_front();
  ++first_item_;
  return true;
}

// ---- positions

std::uint32_t ExecutionTracker::completed_iterations() const {
  if (!current_ || !current_->repeated || in_prefix_) return 0;
  const auto access = string_access(current_->opcode, setup_.cpu);
  const unsigned width = (current_->opcode & 1) != 0 ? 2 : 1;
  const std::uint64_t bytes = access->writes != 0 ? current_->written_bytes : current_->read_bytes;
  const unsigned per_iteration = width * (access->writes != 0 ? access->writes : access->reads);
  return static_cast<std::uint32_t>(bytes / per_iteration);
}

/// Where an access is that the instruction in progress makes.
Position ExecutionTracker::position_now() const {
  if (entry_position_) return *entry_position_;
  if (!current_ || in_prefix_) return {started_, 0};
  return {started_ - 1, completed_iterations()};
}

void ExecutionTracker::lose_positions(const std::string& why) {
  if (positions_lost_) return;
  positions_lost_ = true;
  positions_lost_why_ = why;
}

// ---- bus cycles

void ExecutionTracker::begin_with(const Prefetched& prefetched, std::uint32_t bus_bytes) {
  std::uint16_t ip = prefetched.ip;
  for (std::size_t i = 0; i < prefetched.bytes.size();) {
    BusTransaction fetch;
    fetch.op = BusOp::code_read;
    fetch.address = prefetched.segment.plus32(ip).masked32(setup_.address_mask);
    // Words where they are aligned (8086 Family User's Manual, 4-1).
    const bool word =
        bus_bytes == 2 && fetch.address.offset_in(2) == 0 && i + 1 < prefetched.bytes.size();
    fetch.size = word ? 2 : 1;
    for (std::uint32_t k = 0; k < fetch.size; ++k, ++i, ++ip) {
      fetch.data[k] = prefetched.bytes[i];
      queue_.push_back({fetch.address.plus32(k), fetch.data[k]});
    }
    push(fetch, true);
  }
  next_fetch_ = prefetched.segment.plus32(ip).masked32(setup_.address_mask);
  synchronised_ = true;
}

std::vector<std::uint8_t> ExecutionTracker::queue() const {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < queue_.size(); ++i) bytes.push_back(queue_[i].byte);
  return bytes;
}

/// MOV CS and POP CS, which these processors execute, leave the queue as it is: what is fetched
/// next is from the new segment.
bool ExecutionTracker::has_loaded_cs() const {
  constexpr std::uint8_t kPopCs = 0x0f, kMovSegment = 0x8e;
  if (!current_) return false;
  return current_->opcode == kMovSegment || (traits_.has_pop_cs && current_->opcode == kPopCs);
}

void ExecutionTracker::begin_cycle(const BusTransaction& transaction) {
  if (cycle_open_) fail(transaction.clock, "expected the end of a bus cycle, found another one");
  const bool awaiting_second = entry_ && !entry_->vector_known;
  if (awaiting_second && transaction.op != BusOp::interrupt_acknowledge)
    fail(transaction.clock, "expected the second interrupt acknowledge, found " +
                                std::string(bus_op_name(transaction.op)) +
                                " (check S0, S1 and S2 in the channel map)");
  cycle_open_ = true;
  cycle_ = {transaction.op, transaction.size, transaction.address};
  if (transaction.op == BusOp::code_read) {
    begin_fetch(transaction);
  } else if (awaiting_second) {
    entry_->second_cycle = true;
  } else {
    begin_data(transaction);
  }
}

void ExecutionTracker::begin_fetch(const BusTransaction& transaction) {
  cycle_item_ = push(transaction, false);
  discard_fetch_ = false;
  if (!setup_.queue_status || !synchronised_) return;
  const PhysAddr address = transaction.address.masked32(setup_.address_mask);
  seen_low_ |= ~address.value & setup_.address_mask;
  seen_high_ |= address.value;
  const bool goes_on = !next_fetch_ || has_loaded_cs() ||
                       goes_on_fetching(*next_fetch_, address, setup_.address_mask);
  if (!goes_on)
    fail(transaction.clock, "expected a code fetch from " + hex(next_fetch_->value, 5) +
                                ", found one from " + hex(address.value, 5) +
                                " without the queue having been emptied (" +
                                stuck_lines(*next_fetch_, address) +
                                "check the address lines, QS0 and QS1 in the channel map)");
  next_fetch_ = address.plus32(transaction.size).masked32(setup_.address_mask);
}

/// Those differing lines the ones that never moved: a probe that came off shows so.
std::string ExecutionTracker::stuck_lines(PhysAddr expected, PhysAddr found) const {
  const std::uint64_t stuck = (expected.value ^ found.value) & ~(seen_low_ & seen_high_);
  const unsigned data_lines = setup_.queue_bytes == kQueueOf8088 ? 8 : 16;
  std::string text;
  for (unsigned line = 0; line < 20; ++line) {
    if ((stuck >> line & 1) == 0) continue;
    text += (line < data_lines ? "AD" : "A") + std::to_string(line) +
            ((seen_high_ >> line & 1) != 0 ? " was high" : " was low") +
            " in every fetch so far: look at its probe; ";
  }
  return text;
}

void ExecutionTracker::begin_data(const BusTransaction& transaction) {
  settle_break();
  check_access(transaction);
  if (transaction.op == BusOp::interrupt_acknowledge) {
    if (entry_) abandon_entry("an interrupt was acknowledged before the entry of another ended");
    close_instruction();
    cycle_item_ = push(transaction, false);
    entry_ = Entry{};
    entry_->item = cycle_item_;
    return;
  }
  cycle_item_ = push(transaction, false);
  // During an entry the position is not known yet; settle_entry() fills it in.
  if (!entry_ && setup_.queue_status && positions_valid()) {
    BusTransaction& pushed = item(cycle_item_).transaction;
    pushed.position = position_now();
    pushed.flags |= kPositionKnown;
  }
}

/// The first access of some instructions is known in advance: a cheap proof that the status lines
/// are what the channel map says.
void ExecutionTracker::check_access(const BusTransaction& transaction) {
  if (entry_ || entry_position_ || !current_ || current_->access_checked) return;
  if (transaction.op == BusOp::interrupt_acknowledge || transaction.op == BusOp::halt) return;
  current_->access_checked = true;
  const auto expected = first_access(current_->opcode, setup_.cpu);
  if (expected && *expected != transaction.op)
    fail(transaction.clock, "expected " + std::string(bus_op_name(*expected)) +
                                " by the instruction " + hex(current_->opcode, 2) + " at " +
                                hex(current_->address.value, 5) + ", found " +
                                std::string(bus_op_name(transaction.op)) +
                                " (check S0, S1, S2 and the data lines in the channel map)");
}

void ExecutionTracker::end_cycle(std::span<const std::uint8_t> data, std::uint64_t clock) {
  if (!cycle_open_) return;
  cycle_open_ = false;
  if (cycle_.op == BusOp::interrupt_acknowledge) {
    if (!entry_->second_cycle) return;
    entry_->vector_known = true;
    entry_->vector = data.empty() ? 0 : data[0];
    BusTransaction& acknowledge = item(entry_->item).transaction;
    acknowledge.size = 1;
    acknowledge.data[0] = entry_->vector;
    if (!setup_.queue_status || !positions_valid()) {
      // Nothing to be learned from what follows.
      if (setup_.queue_status) ++unsynchronised_interrupts_;
      item(entry_->item).ready = true;
      entry_.reset();
    }
    return;
  }
  Item& done = item(cycle_item_);
  for (std::size_t i = 0; i < done.transaction.size && i < data.size(); ++i)
    done.transaction.data[i] = data[i];
  done.ready = true;
  if (cycle_.op == BusOp::code_read) {
    if (!setup_.queue_status || !synchronised_ || discard_fetch_) return;
    for (std::size_t i = 0; i < done.transaction.size; ++i)
      queue_.push_back(
          {cycle_.address.plus32(static_cast<std::uint32_t>(i)).masked32(setup_.address_mask),
           done.transaction.data[i]});
    if (queue_.size() > setup_.queue_bytes)
      fail(clock, "expected at most " + std::to_string(setup_.queue_bytes) +
                      " bytes in the prefetch queue, found " + std::to_string(queue_.size()) +
                      " (check QS0 and QS1 in the channel map)");
    return;
  }
  if (entry_) {
    follow_entry(done.transaction, data);
  } else if (current_ && !in_prefix_ && !entry_position_) {
    if (cycle_.op == BusOp::data_read) current_->read_bytes += cycle_.size;
    if (cycle_.op == BusOp::data_write) current_->written_bytes += cycle_.size;
  }
}

// ---- interrupt entry

/// Four bytes of the vector are read, then FLAGS, CS and IP are pushed, low byte first (Intel 8086
/// Family User's Manual, 2.6). The pushed address says whether the last instruction was complete.
void ExecutionTracker::follow_entry(const BusTransaction& transaction,
                                    std::span<const std::uint8_t> data) {
  if (transaction.op == BusOp::data_read && entry_->vector_bytes < kRealVectorBytes) {
    const PhysAddr expected{entry_->vector * 4u + entry_->vector_bytes};
    if (transaction.address.masked32(setup_.address_mask) != expected.masked32(setup_.address_mask))
      fail(transaction.clock, "expected vector " + hex(entry_->vector, 2) + " to be read from " +
                                  hex(expected.value, 5) + ", found a read from " +
                                  hex(transaction.address.value, 5) +
                                  " (check the data and address lines in the channel map)");
    entry_->vector_bytes += transaction.size;
    return;
  }
  if (transaction.op != BusOp::data_write || entry_->vector_bytes < kRealVectorBytes) {
    fail(transaction.clock, "expected the entry of interrupt " + hex(entry_->vector, 2) +
                                " (vector read, then three words pushed), found " +
                                std::string(bus_op_name(transaction.op)) +
                                " (check S0, S1 and S2 in the channel map)");
  }
  for (const std::uint8_t byte : data.first(transaction.size))
    if (entry_->pushed_bytes < entry_->pushed.size()) entry_->pushed[entry_->pushed_bytes++] = byte;
  if (entry_->pushed_bytes == entry_->pushed.size()) settle_entry();
}

/// Interrupted between iterations, the processor will go back to the prefix just before the opcode,
/// and to no earlier one; until the next instruction everything happens at this position.
void ExecutionTracker::settle_break() {
  if (!broken_off_) return;
  broken_off_ = false;
  entry_position_ = {started_ - 1, completed_iterations()};
  --started_;
  return_address_ = traits_.keeps_one_prefix ? current_->last_prefix : current_->first_prefix;
  current_.reset();
}

void ExecutionTracker::settle_entry() {
  const auto& pushed = entry_->pushed;
  const std::uint32_t cs = pushed[2] | std::uint32_t{pushed[3]} << 8;
  const std::uint32_t ip = pushed[4] | std::uint32_t{pushed[5]} << 8;
  const PhysAddr back{(cs * 16 + ip) & 0xfffff & setup_.address_mask};
  if (!entry_position_ && current_ && current_->repeated && back != current_->end) {
    broken_off_ = true;
    settle_break();
  }
  const Position position = entry_position_.value_or(Position{started_, 0});
  const bool known = !return_address_ || back == *return_address_;
  return_address_.reset();
  Item& acknowledge = item(entry_->item);
  if (!known) {
    lose_positions("interrupt at sample " + std::to_string(acknowledge.transaction.clock) +
                   " returns to " + hex(back.value, 5) +
                   ", not to the prefix of the repeated instruction that it interrupted");
  } else {
    for (std::uint64_t i = entry_->item; i < first_item_ + items_.size(); ++i) {
      BusTransaction& transaction = item(i).transaction;
      if (transaction.op == BusOp::code_read) continue;
      transaction.position = position;
      transaction.flags |= kPositionKnown;
    }
    entry_position_ = position;
  }
  acknowledge.ready = true;
  current_.reset();
  entry_.reset();
}

void ExecutionTracker::abandon_entry(const std::string& why) {
  lose_positions(why);
  item(entry_->item).ready = true;
  entry_.reset();
}

// ---- queue

void ExecutionTracker::follow_queue(QueueStatus status, std::uint64_t clock) {
  if (status == QueueStatus::emptied) {
    queue_.clear();
    next_fetch_.reset();
    synchronised_ = true;
    flushed_ = true;
    // A string instruction empties the queue only when it is broken off between two iterations.
    if (current_ && current_->repeated && !entry_ && !in_prefix_) broken_off_ = true;
    // The fetch under way was begun for the old path.
    discard_fetch_ = cycle_open_ && cycle_.op == BusOp::code_read;
    return;
  }
  if (!synchronised_) {
    ++unsynchronised_reports_;
    return;
  }
  if (queue_.empty())
    fail(clock,
         "expected a byte in the prefetch queue when the queue-status pins report one taken, "
         "found none (check QS0, QS1, S0, S1, S2 and CLK in the channel map)");
  const Fetched byte = queue_.front();
  queue_.pop_front();
  if (status == QueueStatus::first_byte) {
    start_instruction(byte, clock);
  } else {
    continue_instruction(byte, clock);
  }
}

void ExecutionTracker::start_instruction(const Fetched& byte, std::uint64_t clock) {
  close_instruction();
  settle_break();
  if (entry_ && !entry_->vector_known)
    fail(clock,
         "expected the second interrupt acknowledge, found the start of an instruction "
         "(check QS0, QS1, S0, S1 and S2 in the channel map)");
  if (entry_) abandon_entry("interrupt handler began before its entry was complete");
  entry_position_.reset();
  return_address_.reset();
  BusTransaction start;
  start.op = BusOp::instruction_start;
  start.clock = clock;
  start.address = byte.address;
  start.size = 1;
  start.data[0] = byte.byte;
  start.flags = kClockKnown;
  if (flushed_) start.flags |= kFlushed;
  flushed_ = false;
  if (positions_valid()) {
    start.position = {started_, 0};
    start.flags |= kPositionKnown;
  }
  if (is_early_prefix(byte.byte, setup_.cpu)) {
    start.flags |= kPrefix;
    push(start, true);
    if (!in_prefix_) first_prefix_address_ = byte.address;
    prefix_address_ = byte.address;
    rep_prefix_ = (in_prefix_ && rep_prefix_) || byte.byte == 0xf2 || byte.byte == 0xf3 ||
                  (byte.byte & 0xfe) == 0x64;
    in_prefix_ = true;
    return;
  }
  const std::uint8_t opcode = byte.byte;
  current_ = Current{};
  current_->opcode = opcode;
  current_->address = byte.address;
  current_->end = byte.address.plus32(1).masked32(setup_.address_mask);
  current_->first_prefix = in_prefix_ ? first_prefix_address_ : byte.address;
  current_->last_prefix = in_prefix_ ? prefix_address_ : byte.address;
  current_->repeated = in_prefix_ && rep_prefix_ && string_access(opcode, setup_.cpu).has_value();
  current_->length = early_instruction_length(start.bytes(), setup_.cpu);
  current_->item = push(start, current_->length == 1u);
  in_prefix_ = false;
  rep_prefix_ = false;
  ++started_;
}

void ExecutionTracker::continue_instruction(const Fetched& byte, std::uint64_t clock) {
  // Already handed out, or the processor was not seen beginning it.
  const bool extra =
      !current_ || in_prefix_ || current_->item < first_item_ || item(current_->item).ready;
  if (extra) {
    if (++odd_lengths_ > kOddLengthLimit && odd_lengths_ * 64 > started_)
      fail(clock,
           "expected the bytes taken from the queue to be whole instructions, found too "
           "many that are not (check QS0 and QS1 in the channel map)");
    return;
  }
  Item& start = item(current_->item);
  start.transaction.data[start.transaction.size++] = byte.byte;
  current_->end = byte.address.plus32(1).masked32(setup_.address_mask);
  if (!current_->length)
    current_->length = early_instruction_length(start.transaction.bytes(), setup_.cpu);
  start.ready = current_->length == std::size_t{start.transaction.size};
}

/// The next instruction begins: the bytes of this one are all there are.
void ExecutionTracker::close_instruction() {
  if (!current_ || in_prefix_ || current_->item < first_item_) return;
  Item& start = item(current_->item);
  if (!start.ready) ++odd_lengths_;
  start.ready = true;
}

void ExecutionTracker::finish() {
  close_instruction();
  if (entry_) {
    if (entry_->vector_known) {
      abandon_entry("the capture ends within the entry of an interrupt");
    } else {
      // Half an acknowledge says nothing: it has no vector.
      items_.drop_back(first_item_ + items_.size() - entry_->item);
      entry_.reset();
      cycle_open_ = false;
      return;
    }
  }
  // The cycle the capture ends in has no data: it is left out.
  if (cycle_open_ && cycle_item_ >= first_item_) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(cycle_item_ - first_item_));
  }
  cycle_open_ = false;
}

std::vector<std::string> ExecutionTracker::warnings() const {
  std::vector<std::string> lines;
  if (unsynchronised_reports_ != 0)
    lines.push_back(std::to_string(unsynchronised_reports_) +
                    " queue reports before the queue was first emptied: the instructions they "
                    "belong to are not known, and positions count from the first known one");
  if (unsynchronised_interrupts_ != 0)
    lines.push_back(std::to_string(unsynchronised_interrupts_) +
                    " interrupts have no known position");
  if (odd_lengths_ != 0)
    lines.push_back(std::to_string(odd_lengths_) +
                    " instructions took another number of bytes from the queue than their encoding "
                    "asks for");
  if (positions_lost_)
    lines.push_back("positions are not known from here on: " + positions_lost_why_);
  return lines;
}

}  // namespace citcat
