#include "golden/pins/bus_unit.h"

#include <algorithm>

namespace citcat::testing {
namespace {

constexpr std::uint32_t kOneMegabyte = 0xfffff;

BusOp op_of(ModelCycle cycle) {
  switch (cycle) {
    case ModelCycle::read:
      return BusOp::data_read;
    case ModelCycle::write:
      return BusOp::data_write;
    case ModelCycle::in:
      return BusOp::io_read;
    case ModelCycle::out:
      return BusOp::io_write;
    case ModelCycle::acknowledge:
      return BusOp::interrupt_acknowledge;
    case ModelCycle::halt:
      return BusOp::halt;
  }
  return BusOp::halt;
}

BusTransaction cycle_of(BusOp op, std::uint32_t address, unsigned size, std::uint32_t value) {
  BusTransaction t;
  t.op = op;
  t.address = PhysAddr{address};
  t.size = static_cast<std::uint8_t>(size);
  for (unsigned i = 0; i < size; ++i) t.data[i] = static_cast<std::uint8_t>(value >> (8 * i));
  return t;
}

}  // namespace

BusUnit::BusUnit(const BusUnitTraits& traits, const std::vector<std::uint8_t>& memory,
                 std::uint32_t start, unsigned seed)
    : traits_(traits), memory_(memory), random_(seed), fetched_(start) {
  idle(3);
  next_report_ = 1;
  if (traits.empties_at_first) report(QueueReport::emptied, 1);
}

void BusUnit::idle(unsigned count) {
  for (; count != 0; --count) clocks.push_back({});
}

void BusUnit::hold() {
  for (unsigned n = 4 + draw(12); n != 0; --n) {
    clocks.push_back({});
    clocks.back().held = true;
  }
}

/// Returns the clock in which it begins.
std::size_t BusUnit::append(const BusTransaction& cycle, bool locked) {
  const std::size_t before = clocks.size();
  idle(draw(3));
  const std::size_t begin = clocks.size(), number = cycles.size();
  last_begin_ = begin;
  cycles.push_back(cycle);
  const auto clock = [&](ClockPhase phase) { clocks.push_back({number, phase, {}, locked}); };
  clock(ClockPhase::t1);
  clock(ClockPhase::t2);
  // A halt is told, and nothing answers.
  if (cycle.op != BusOp::halt) {
    for (unsigned waits = traits_.has_waits ? draw(4) : 0; waits != 0; --waits)
      clock(ClockPhase::wait);
  }
  clock(ClockPhase::t3);
  clock(ClockPhase::t4);
  for (std::size_t i = before; i < begin; ++i) clocks[i].locked = locked;
  return begin;
}

void BusUnit::fetch() {
  const bool both = traits_.bus_bytes == 2 && fetched_ % 2 == 0;
  const unsigned size = both ? 2 : 1;
  std::uint32_t value = memory_[fetched_];
  if (both) value |= std::uint32_t{memory_[fetched_ + 1]} << 8;
  append(cycle_of(BusOp::code_read, fetched_, size, value), false);
  fetched_ = (fetched_ + size) & kOneMegabyte;
  for (unsigned i = 0; i < size; ++i) queue_.push_back({clocks.size()});
}

/// As often as there is room, or not at all.
void BusUnit::fetch_ahead() {
  while (queue_.size() + traits_.bus_bytes <= traits_.queue_bytes && draw(2) != 0) fetch();
}

void BusUnit::report(QueueReport kind, std::size_t not_before) {
  const std::size_t at = std::max(next_report_, not_before) + draw(2);
  while (clocks.size() <= at) idle(1);
  clocks[at].queue = kind;
  next_report_ = at + 1;
}

void BusUnit::take(QueueReport kind) {
  fetch_ahead();
  if (queue_.empty()) fetch();
  report(kind, std::max(unit_free_, static_cast<std::size_t>(queue_.front().ready)));
  queue_.pop_front();
}

void BusUnit::jump(std::uint32_t to) {
  // A fetch that is under way is made for nothing.
  report(QueueReport::emptied, std::max(unit_free_, last_begin_));
  queue_.clear();
  // What is fetched from now on is behind the report.
  while (clocks.size() < next_report_) idle(1);
  fetched_ = to;
}

void BusUnit::access(const ModelAccess& a, bool locked) {
  // The instruction was taken before it does anything.
  while (clocks.size() < next_report_) idle(1);
  const BusOp op = op_of(a.cycle);
  std::size_t begin = 0;
  if (op == BusOp::interrupt_acknowledge) {
    clocks.back().request = true;
    for (unsigned i = 0; i < 2; ++i) append(cycle_of(op, 0, 1, a.value), true);
    // The decoder gives both as one.
    cycles.erase(cycles.end() - 1);
    for (PinClock& clock : clocks) clock.cycle = std::min(clock.cycle, cycles.size() - 1);
  } else if (op == BusOp::halt) {
    append(cycle_of(op, 0, 0, 0), locked);
  } else if (a.size == 2 && (traits_.bus_bytes == 1 || a.address % 2 != 0)) {
    append(cycle_of(op, a.address, 1, a.value & 0xff), locked);
    begin = append(cycle_of(op, a.address + 1, 1, a.value >> 8), locked);
  } else {
    begin = append(cycle_of(op, a.address, a.size, a.value), locked);
  }
  const bool posted = op == BusOp::data_write || op == BusOp::io_write;
  unit_free_ = posted ? begin + 1 : clocks.size();
}

void BusUnit::run(const ModelStep& step) {
  const std::size_t taken = step.code.size() - step.immediates;
  for (std::size_t i = 0; i < taken; ++i)
    take(i <= step.prefixes ? QueueReport::first_byte : QueueReport::further_byte);
  if (step.broken_off && draw(2) != 0) jump(step.linear);
  unsigned late = step.immediates;
  const auto take_late = [&] {
    for (; late != 0; --late) take(QueueReport::further_byte);
  };
  // Where the queue is emptied, the return address may be stored behind that.
  bool emptied = false;
  for (std::size_t i = 0; i < step.accesses.size(); ++i) {
    const ModelCycle cycle = step.accesses[i].cycle;
    const bool writes = cycle == ModelCycle::write || cycle == ModelCycle::out;
    if (writes) take_late();
    const bool last = i + 1 == step.accesses.size();
    if (step.jumped && writes && last && draw(2) != 0) {
      // Nothing is fetched before that.
      jump(step.next);
      emptied = true;
    } else {
      fetch_ahead();
    }
    access(step.accesses[i], step.locked);
  }
  take_late();
  if (step.jumped && !emptied) jump(step.next);
  if (step.halted) idle(4 + draw(20));
}

}  // namespace citcat::testing
