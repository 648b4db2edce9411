#include "capture/complete/address_completer.h"

#include <fmt/format.h>

#include <algorithm>

namespace citcat {
namespace {

/// So many places to come back to are kept, each for so many transactions: what is wrong shows
/// itself earlier, but for a loop that counts.
constexpr std::size_t kMostChoices = 8;
constexpr std::uint64_t kChoiceLasts = std::uint64_t{1} << 17;
/// No instruction makes more accesses than this: the vector, three words, and its operands.
constexpr std::uint64_t kMostLookedAt = 256;
/// By an interrupt: flags, CS and IP, low byte first (8086 Family User's Manual, 2.6).
constexpr std::size_t kPushedBytes = 6;
/// Ways to go on: as if nothing had happened, into the handler of an interrupt; all others are
/// fetches.
constexpr std::uint64_t kStay = ~std::uint64_t{0};
constexpr std::uint64_t kEnter = kStay - 1;

}  // namespace

AddressCompleter::AddressCompleter(std::function<bool(BusTransaction&)> next,
                                   const FetchSetup& setup, GuidedProcessor& processor)
    : pending_(std::move(next)), setup_(setup), processor_(processor), fetches_(pending_, setup) {
  fetches_.begin(processor.place(), 0);
}

bool AddressCompleter::next(BusTransaction& out) {
  while (!pending_.take(out, settled())) {
    if (ended_) return false;
    try {
      advance();
    } catch (const Contradiction& why) {
      if (!why.ended) remember(why);
      if (why.ended || !go_back()) give_up(why);
    }
  }
  return true;
}

/// What nothing can take back any more.
std::uint64_t AddressCompleter::settled() const {
  if (ended_) return ~std::uint64_t{0};
  // A fetch of two bytes is looked at until both were taken.
  std::uint64_t limit = fetches_.next_transaction();
  if (!choices_.empty()) limit = std::min(limit, choices_.front().number);
  if (furthest_) limit = std::min(limit, furthest_->pending.first());
  return limit;
}

/// Other ways are tried now. Where none goes further, this one is what there is.
void AddressCompleter::remember(const Contradiction& why) {
  if (!furthest_ || data_ > furthest_->reached) furthest_.emplace(Attempt{pending_, why, data_});
}

void AddressCompleter::give_up(const Contradiction& why) {
  // What the last instruction did do is as good as what those before it did.
  if (why.ended) {
    for (const Used& used : used_) pending_.complete(used.number, used.address);
    fetches_.finish();
  } else {
    pending_ = furthest_->pending;
    contradiction_ = furthest_->why;
  }
  choices_.clear();
  ended_ = true;
}

void AddressCompleter::advance() {
  if (furthest_ && data_ > furthest_->reached) furthest_.reset();
  if (!choices_.empty() && data_ > choices_.front().number + kChoiceLasts)
    choices_.erase(choices_.begin());
  if (is_interrupted()) {
    enter_interrupt();
    return;
  }
  if (processor_.halted() && !next_data())
    throw Contradiction{"the capture ends", ~std::uint64_t{0}, true};
  if (!processor_.in_repeat()) find_fetches();
  execute();
}

// ---- where code comes from

/// Where the processor jumped, finds the fetch that its next instruction begins with.
void AddressCompleter::find_fetches() {
  const CodePlace place = processor_.place();
  const bool goes_on = fetches_.is_at(place);
  if (goes_on && jump_ == GuidedProcessor::Jump::no) return;
  std::vector<std::uint64_t> ways = fetches_.candidates(place);
  if (goes_on && jump_ == GuidedProcessor::Jump::perhaps) ways.push_back(kStay);
  if (ways.empty()) {
    // The message of what is there instead.
    if (!pending_.find(CycleOrder::code, fetches_.next_transaction()))
      throw Contradiction{"the capture ends", ~std::uint64_t{0}, true};
    throw Contradiction{fmt::format("expected code to be fetched from {:05x}, found no such fetch",
                                    place.address().value),
                        fetches_.next_transaction()};
  }
  const std::uint64_t way = choose(Choice::Kind::fetches, std::move(ways));
  jump_ = GuidedProcessor::Jump::no;
  if (way != kStay) fetches_.jump(place, way);
}

std::uint64_t AddressCompleter::choose(Choice::Kind kind, std::vector<std::uint64_t> ways) {
  if (decided_ && decided_->first == kind) {
    const std::uint64_t way = decided_->second;
    decided_.reset();
    return way;
  }
  const std::uint64_t way = ways.front();
  if (ways.size() > 1) {
    Choice choice;
    choice.kind = kind;
    choice.processor = processor_.mark();
    choice.cursors = cursors();
    choice.number = std::min({fetches_.next_transaction(), data_, starts_});
    choice.ways.assign(ways.rbegin(), ways.rend() - 1);
    if (choices_.size() == kMostChoices) choices_.erase(choices_.begin());
    choices_.push_back(std::move(choice));
  }
  return way;
}

AddressCompleter::Cursors AddressCompleter::cursors() const {
  return {fetches_.state(), data_, starts_, starts_known_, instructions_, jump_};
}

/// To the latest choice that has a way left. False where there is none.
bool AddressCompleter::go_back() {
  if (choices_.empty()) return false;
  Choice& choice = choices_.back();
  processor_.return_to(*choice.processor);
  const Cursors& to = choice.cursors;
  fetches_.return_to(to.fetches);
  data_ = to.data;
  starts_ = to.starts;
  starts_known_ = to.starts_known;
  instructions_ = to.instructions;
  jump_ = to.jump;
  pending_.reopen(CycleOrder::data, data_);
  pending_.reopen(CycleOrder::starts, starts_);
  used_.clear();
  used_up_to_.clear();
  decided_ = {choice.kind, choice.ways.back()};
  choice.ways.pop_back();
  if (choice.ways.empty()) choices_.pop_back();
  return true;
}

// ---- interrupts

/// Whether the processor enters the handler of an interrupt here, which is the next thing that the
/// bus shows.
bool AddressCompleter::is_interrupted() {
  // It was asked here before, and the answer was no.
  if (decided_ && decided_->first == Choice::Kind::fetches) return false;
  const auto number = next_data();
  if (!number || pending_.at(*number)->op != BusOp::interrupt_acknowledge) return false;
  const bool repeats = processor_.in_repeat();
  if (!repeats && (shows_more_instructions(*number) || !was_pushed(*number))) return false;
  std::vector<std::uint64_t> ways = ways_to_enter(*number);
  if (repeats && ways.empty()) ways.push_back(kEnter);
  if (ways.empty()) return false;
  // A loop is at its first instruction more than once.
  const auto fetch = pending_.find(CycleOrder::code, fetches_.next_transaction());
  if (!repeats && !starts_known_ && fetch && *fetch < *number) ways.push_back(kStay);
  const std::uint64_t way = choose(Choice::Kind::interrupt, std::move(ways));
  if (way == kStay) return false;
  if (way != kEnter) fetches_.jump(processor_.place(), way);
  return true;
}

/// kEnter; or the fetch with which the code begins that the processor is going to come back to,
/// where it has just jumped there, or empties the queue as it breaks off a REP.
std::vector<std::uint64_t> AddressCompleter::ways_to_enter(std::uint64_t acknowledge) {
  std::vector<std::uint64_t> ways;
  const CodePlace place = processor_.place();
  if (!fetches_.is_at(place) || jump_ != GuidedProcessor::Jump::no) {
    for (const std::uint64_t fetch : fetches_.candidates(place))
      if (fetch < acknowledge && fetches_.only_queued_between(place, fetch, acknowledge))
        ways.push_back(fetch);
  }
  if (fetches_.only_queued_before(acknowledge)) ways.push_back(kEnter);
  return ways;
}

/// By the queue's status, where it was captured.
bool AddressCompleter::shows_more_instructions(std::uint64_t acknowledge) {
  if (!starts_known_) return false;
  const auto start = pending_.find(CycleOrder::starts, starts_);
  return start && *start < acknowledge;
}

/// Whether the entry of the interrupt pushed the place where the processor is.
bool AddressCompleter::was_pushed(std::uint64_t acknowledge) {
  std::vector<std::uint8_t> pushed;
  for (std::uint64_t number = acknowledge + 1;
       pushed.size() < kPushedBytes && number < acknowledge + kMostLookedAt; ++number) {
    const BusTransaction* const t = pending_.at(number);
    // The capture ends within the entry: nothing denies it.
    if (t == nullptr) return true;
    if (t->op != BusOp::data_write) continue;
    pushed.insert(pushed.end(), t->data.begin(), t->data.begin() + t->size);
  }
  if (pushed.size() < kPushedBytes) return false;
  const CodePlace place = processor_.place();
  return (pushed[2] | pushed[3] << 8) == place.segment &&
         (pushed[4] | pushed[5] << 8) == place.offset;
}

void AddressCompleter::enter_interrupt() {
  const std::uint64_t number = *next_data();
  const std::uint8_t vector = pending_.at(number)->data[0];
  data_ = number + 1;
  const CodePlace back = processor_.place();
  processor_.interrupt(vector, *this);
  use_accesses();
  jump_ = GuidedProcessor::Jump::yes;
  leave_queue_of(back);
}

/// Meanwhile the processor may have begun to fetch at the place that it is going to come back to.
void AddressCompleter::leave_queue_of(CodePlace back) {
  const CodePlace handler = processor_.place();
  if (!fetches_.candidates(handler).empty()) return;
  const FetchRuns::State before = fetches_.state();
  for (const std::uint64_t fetch : fetches_.candidates(back)) {
    fetches_.jump(back, fetch);
    if (!fetches_.candidates(handler).empty()) return;
    fetches_.return_to(before);
  }
}

// ---- instructions

void AddressCompleter::execute() {
  const CodePlace place = processor_.place();
  const GuidedProcessor::Step step = processor_.step(*this);
  if (step.begun) {
    const std::uint64_t opcode =
        pending_.find(CycleOrder::code, fetches_.next_transaction()).value_or(0);
    fetches_.execute(step.length);
    // Operands may be read before an immediate value is fetched, but not before the opcode.
    for (const Used& used : used_)
      if (used.number < opcode)
        throw Contradiction{"an access comes before the fetch of its instruction", used.number};
    use_starts(place, step, opcode);
  }
  use_accesses();
  if (step.halted) use_halt();
  if (step.completed) {
    ++instructions_;
    jump_ = step.jump;
  }
}

/// The accesses of a step are complete: each must have been the next one of the capture.
void AddressCompleter::use_accesses() {
  std::sort(used_.begin(), used_.end(),
            [](const Used& a, const Used& b) { return a.number < b.number; });
  for (const Used& used : used_) {
    const auto number = next_data();
    if (number != used.number)
      throw Contradiction{
          fmt::format("expected {} at {:05x} next, found another access before it",
                      bus_op_name(pending_.at(used.number)->op), used.address.value),
          number.value_or(used.number)};
    pending_.complete(used.number, used.address);
    data_ = used.number + 1;
  }
  used_.clear();
  used_up_to_.clear();
}

void AddressCompleter::use_halt() {
  const auto number = next_data();
  if (!number) return;
  if (pending_.at(*number)->op == BusOp::halt) {
    data_ = *number + 1;
  } else if (pending_.at(*number)->op != BusOp::interrupt_acknowledge) {
    throw Contradiction{"expected nothing but an interrupt after a halt", *number};
  }
}

/// The reports of the queue status: a byte taken for each prefix, and for the opcode.
void AddressCompleter::use_starts(CodePlace place, const GuidedProcessor::Step& step,
                                  std::uint64_t fetched) {
  for (std::uint32_t i = 0; i <= step.prefix_bytes; ++i) {
    const auto number = pending_.find(CycleOrder::starts, starts_);
    if (!number) return;
    const BusTransaction& start = *pending_.at(*number);
    const PhysAddr address = place.plus(i);
    const bool fits = setup_.fits(address, start.address);
    if (!starts_known_) {
      // Reports begin where the queue was emptied for the first time.
      if (!fits || !start.has(kFlushed) || *number < fetched) return;
      starts_known_ = true;
    }
    if (!fits)
      throw Contradiction{
          fmt::format("expected the instruction at {:05x} to be taken from the queue",
                      address.value),
          *number};
    pending_.complete(*number, address);
    starts_ = *number + 1;
  }
}

// ---- the bus

/// The next cycle of a kind, which transfers at most `most` bytes at `address`.
const BusTransaction& AddressCompleter::next_access(BusOp op, PhysAddr address, std::size_t most) {
  auto up_to = std::find_if(used_up_to_.begin(), used_up_to_.end(),
                            [&](const auto& kind) { return kind.first == op; });
  if (up_to == used_up_to_.end()) up_to = used_up_to_.insert(up_to, {op, data_});
  std::uint64_t number = std::max(up_to->second, pending_.first());
  std::string found = "none";
  for (const std::uint64_t last = number + kMostLookedAt; number < last; ++number) {
    const BusTransaction* const t = pending_.at(number);
    if (t == nullptr) throw Contradiction{"the capture ends", ~std::uint64_t{0}, true};
    if (order_of(t->op) != CycleOrder::data) continue;
    // An acknowledge or a halt is between two instructions.
    if (t->op == BusOp::interrupt_acknowledge || t->op == BusOp::halt) {
      found = std::string(bus_op_name(t->op));
      break;
    }
    if (t->op != op) continue;
    if (!setup_.fits(address, t->address) || t->size > most) {
      found = fmt::format("one at ..{:02x}", t->address.value & setup_.address_mask);
      break;
    }
    used_.push_back({number, address});
    up_to->second = number + 1;
    return *t;
  }
  throw Contradiction{
      fmt::format("expected {} at {:05x}, found {}", bus_op_name(op), address.value, found),
      number};
}

void AddressCompleter::read(PhysAddr address, std::span<std::uint8_t> into) {
  while (!into.empty()) {
    const BusTransaction& t = next_access(BusOp::data_read, address, into.size());
    std::copy_n(t.data.begin(), t.size, into.begin());
    into = into.subspan(t.size);
    address = address.plus32(t.size);
  }
}

void AddressCompleter::write(PhysAddr address, std::span<const std::uint8_t> bytes,
                             std::uint16_t free) {
  unsigned shift = 0;
  while (!bytes.empty()) {
    const BusTransaction& t = next_access(BusOp::data_write, address, bytes.size());
    for (std::size_t i = 0; i < t.size; ++i, shift += 8) {
      const unsigned ignored = shift < 16 ? free >> shift & 0xff : 0;
      if (((t.data[i] ^ bytes[i]) & ~ignored) != 0)
        throw Contradiction{fmt::format("expected {:02x} to be written at {:05x}, found {:02x}",
                                        bytes[i], address.value + i, t.data[i]),
                            used_.back().number};
    }
    bytes = bytes.subspan(t.size);
    address = address.plus32(t.size);
  }
}

std::uint32_t AddressCompleter::port_read(std::uint16_t port, std::uint32_t size) {
  std::uint32_t value = 0;
  for (std::uint32_t done = 0; done < size;) {
    const BusTransaction& t =
        next_access(BusOp::io_read, PhysAddr{static_cast<std::uint16_t>(port + done)}, size - done);
    value |= t.value() << (8 * done);
    done += t.size;
  }
  return value;
}

void AddressCompleter::port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  for (std::uint32_t done = 0; done < size;) {
    const BusTransaction& t = next_access(
        BusOp::io_write, PhysAddr{static_cast<std::uint16_t>(port + done)}, size - done);
    const std::uint32_t expected = value >> (8 * done) & (t.size == 1 ? 0xff : 0xffff);
    if (t.value() != expected)
      throw Contradiction{fmt::format("expected {:02x} to be written to port {:04x}, found {:02x}",
                                      expected, port + done, t.value()),
                          used_.back().number};
    done += t.size;
  }
}

}  // namespace citcat
