#include "replay/verify/bus_order_check.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "events/port_transfers.h"
#include "replay/machine/code_place.h"

namespace citcat {

bool BusOrderCheck::pull() {
  if (at_end_) return false;
  BusTransaction t;
  const auto take = [&](Kind kind, bool values) {
    for (std::uint32_t i = 0; i < t.size; ++i) {
      const std::uint8_t value = values ? t.data[i] : std::uint8_t{0};
      queue(kind).push_back({t.index, t.address.plus32(i), value});
    }
  };
  at_end_ = !evidence_->next(t) ||
            (t.op == BusOp::interrupt_acknowledge && acknowledged_++ == interrupts_);
  if (at_end_) return false;
  switch (t.op) {
    case BusOp::data_read:
      take(Kind::read, false);
      break;
    case BusOp::data_write:
      take(Kind::write, true);
      break;
    case BusOp::code_read:
      if (completes_) fetches_.push_back({t.index, t.address, t.size});
      break;
    case BusOp::io_read:
    case BusOp::io_write:
      // A part after port FFFF is at 10000 on some buses.
      t.address = t.address.masked32(0xffff);
      take(Kind::port, true);
      break;
    default:
      break;
  }
  return true;
}

/// Makes sure that the next byte of a kind is known; false at the end of the evidence.
bool BusOrderCheck::fill(Kind kind) {
  // Accesses of another kind held back meanwhile: more than any instruction makes between two of
  // this kind, and the replay is on another way.
  constexpr std::size_t kMostHeld = 1 << 20;
  std::deque<Byte>& waiting = queue(kind);
  while (waiting.empty() && pull()) {
    if (queues_[0].size() + queues_[1].size() + queues_[2].size() > kMostHeld) break;
  }
  return !waiting.empty() || !at_end_;
}

/// Makes the access to `address` the next one, if it is among the few that come.
void BusOrderCheck::bring_forward(Kind kind, PhysAddr address) {
  constexpr std::ptrdiff_t kWindow = 64;  // bytes; the largest frame has 36
  std::deque<Byte>& waiting = queue(kind);
  while (std::ssize(waiting) < kWindow && pull()) {
  }
  const auto end = waiting.begin() + std::min(std::ssize(waiting), kWindow);
  const auto it =
      std::find_if(waiting.begin(), end, [&](const Byte& b) { return b.address == address; });
  if (it != end) std::rotate(waiting.begin(), it, it + 1);
}

void BusOrderCheck::compare(Kind kind, PhysAddr address, std::uint8_t value, bool in_any_order) {
  if (ended_ || (difference_ && !completes_)) return;
  std::deque<Byte>& waiting = queue(kind);
  if (in_any_order || (completes_ && kind == Kind::read)) bring_forward(kind, address);
  bool goes_on = fill(kind);
  while (kind == Kind::read && !waiting.empty() && waiting.front().address != address &&
         is_table(waiting.front())) {
    pass_over(waiting.front());
    waiting.pop_front();
    goes_on = fill(kind);
  }
  if (!goes_on) {
    ended_ = true;
    if (!completes_) machine_->control().stop_before(machine_->position());
    return;
  }
  const Byte expected = waiting.empty() ? Byte{} : waiting.front();
  if (completes_ && kind == Kind::write && expected.address == address && expected.value != value &&
      machine_->model_specific_results() != 0 && machine_->in_floating_point()) {
    // Implementations compute it differently: the bus is right.
    value = expected.value;
    machine_->correct(address, {&value, 1});
  }
  if (kind == Kind::write && completes_) written_.push_back(expected);
  if (waiting.empty() || expected.address != address || expected.value != value) {
    if (!difference_) {
      if (completes_ && expected.address == address) ++agreed_;
      differ({kind, expected, {expected.transaction, address, value}});
    }
    if (!completes_) return machine_->control().stop_before(machine_->position());
  }
  if (kind == Kind::read && !difference_) last_read_ = std::max(last_read_, expected.transaction);
  if (!waiting.empty()) waiting.pop_front();
  if (difference_) return;
  agreed_ += completes_ && kind == Kind::write ? 2 : 1;
  last_agreed_ = std::max(last_agreed_, expected.transaction);
}

bool BusOrderCheck::exhausted() {
  const auto is_open = [this](const Byte& byte) { return !is_table(byte); };
  do {
    for (const Kind kind : {Kind::read, Kind::write, Kind::port}) {
      const std::deque<Byte>& left = queue(kind);
      if (std::any_of(left.begin(), left.end(), is_open)) return false;
    }
  } while (pull());
  return true;
}

bool BusOrderCheck::fetched_lately(PhysAddr address) const {
  return std::any_of(recent_fetches_.begin(), recent_fetches_.end(),
                     [&](const Fetch& f) { return address.is_within32(f.address, f.size); });
}

void BusOrderCheck::fetch(PhysAddr a, std::uint32_t size, Position) {
  if (!completes_ || ended_ || difference_) return;
  // What was fetched ahead and not run, or fetched once and run again.
  constexpr std::size_t kAhead = 16, kKept = 32;
  for (std::uint32_t i = 0; i < size; ++i) {
    const PhysAddr address = machine_->memory().captured(a.plus32(i));
    if (!recent_fetches_.empty() &&
        address.is_within32(recent_fetches_.back().address, recent_fetches_.back().size)) {
      continue;
    }
    while (fetches_.size() < kAhead && pull()) {
    }
    const auto wanted = std::find_if(fetches_.begin(), fetches_.end(), [&](const Fetch& f) {
      return address.is_within32(f.address, f.size);
    });
    if (wanted == fetches_.end() || wanted - fetches_.begin() >= std::ptrdiff_t{kAhead}) {
      if (fetched_lately(address)) continue;
      if (at_end_) {
        ended_ = true;
        return;
      }
      const Fetch next = fetches_.empty() ? Fetch{} : fetches_.front();
      differ({Kind::fetch, {next.transaction, next.address, 0}, {next.transaction, address, 0}});
      return;
    }
    recent_fetches_.insert(recent_fetches_.end(), fetches_.begin(), wanted + 1);
    last_agreed_ = std::max(last_agreed_, wanted->transaction);
    ++agreed_;
    fetches_.erase(fetches_.begin(), wanted + 1);
    while (recent_fetches_.size() > kKept) recent_fetches_.pop_front();
  }
}

void BusOrderCheck::differ(const Difference& difference) {
  difference_ = difference;
  if (!completes_) return;
  for (const Kind kind : {Kind::read, Kind::write}) {
    fill(kind);
    if (!queue(kind).empty()) next_accesses_.push_back(queue(kind).front().address);
  }
}

bool BusOrderCheck::is_table(const Byte& byte) const {
  return tables_.count(byte.address.page()) != 0;
}

/// The level of a long-mode table: 4 where CR3 points, 0 where it is not known.
unsigned BusOrderCheck::level_of(FrameNumber page) const {
  if (page == machine_->engine().wide().cr(3) / kPageSize) return 4;
  const auto table = tables_.find(page);
  return table == tables_.end() ? 0 : table->second;
}

/// A walk that the replay does not make. Of long mode's it goes on through tables that the replay
/// may never have seen.
void BusOrderCheck::pass_over(const Byte& byte) {
  constexpr std::uint32_t kEntry = 8, kPresent = 1, kLarge = 0x80;
  const unsigned level = level_of(byte.address.page());
  const Memory& memory = machine_->memory();
  const bool names_table = in_long_mode(machine_->engine()) && level > 1 &&
                           byte.address.offset_in(kEntry) == 0 &&
                           memory.is_mapped(byte.address.page());
  if (!names_table) return;
  std::uint32_t entry = 0;
  std::memcpy(&entry, memory.host(byte.address), sizeof entry);
  if ((entry & (kPresent | kLarge)) == kPresent) tables_[entry / kPageSize] = level - 1;
}

/// What the bus shows being read before something that was read must have been read too.
void BusOrderCheck::settle_reads() {
  std::deque<Byte>& waiting = queue(Kind::read);
  while (!difference_ && !waiting.empty() && waiting.front().transaction < last_read_) {
    const Byte left = waiting.front();
    if (!is_table(left)) differ({Kind::read, left, {left.transaction, {}, 0}});
    waiting.pop_front();
  }
}

void BusOrderCheck::instruction(const ExecutedInstruction&, Position now) {
  if (completes_) settle_reads();
  if (difference_ || ended_) return machine_->control().stop_before(now);
  written_.clear();
}

void BusOrderCheck::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position) {
  if (kind == AccessKind::walk) {
    tables_.emplace(a.page(), 0u);
    return;
  }
  for (std::uint32_t i = 0; i < size; ++i) {
    compare(Kind::read, machine_->memory().captured(a.plus32(i)), 0, kind == AccessKind::system);
  }
}

void BusOrderCheck::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                          Position) {
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    compare(Kind::write, machine_->memory().captured(a.plus32(i)), bytes[i],
            kind == AccessKind::system);
  }
}

/// An access in two dwords may show the upper one on the bus first (events/port_transfers.h).
void BusOrderCheck::compare_port(std::uint16_t port, std::uint32_t size, std::uint32_t value) {
  const auto address = [port](std::uint32_t i) {
    return PhysAddr{port}.plus32(i).masked32(0xffff);
  };
  const std::uint32_t below = bytes_below_dword(port, size);
  std::uint32_t first = 0;
  if (below != 0 && !ended_) {
    fill(Kind::port);
    const std::deque<Byte>& waiting = queue(Kind::port);
    if (!waiting.empty() && waiting.front().address == address(below)) first = below;
  }
  for (std::uint32_t n = 0; n < size; ++n) {
    const std::uint32_t i = (first + n) % size;
    compare(Kind::port, address(i), static_cast<std::uint8_t>(part_of(value, i, 1)));
  }
}

void BusOrderCheck::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position) {
  compare_port(port, size, value);
}

void BusOrderCheck::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                             Position) {
  compare_port(port, size, value);
}

}  // namespace citcat
