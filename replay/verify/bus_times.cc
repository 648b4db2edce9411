#include "replay/verify/bus_times.h"

#include <algorithm>

namespace citcat {

void BusTimes::captured(const BusTransaction& t) {
  if (!t.has(kClockKnown)) return;
  if (t.op == BusOp::interrupt_acknowledge) {
    if (interrupts_without_one_ == 0) {
      acknowledges_.push_back(t.clock);
    } else {
      --interrupts_without_one_;
    }
    return;
  }
  // A write-back is of the time when the line was needed for something else.
  if (t.is_memory() && t.has(kPositionKnown) && !t.has(kWriteBack)) {
    counted_.push_back({t.position.instruction, t.clock});
  }
}

void BusTimes::interrupted(Position now) {
  if (acknowledges_.empty()) {
    ++interrupts_without_one_;
    return;
  }
  note(acknowledges_.front(), now);
  acknowledges_.pop_front();
}

void BusTimes::started(const BusTransaction& t, Position now) {
  if (!t.has(kClockKnown) || (started_ && clock_ && position_ == now)) return;
  clock_ = t.clock;
  position_ = now;
  started_ = true;
}

void BusTimes::note(std::uint64_t clock, Position now) {
  const bool same = clock_ && position_ == now;
  if (same && started_) return;
  started_ = false;
  clock_ = same ? std::min(*clock_, clock) : clock;
  position_ = now;
}

std::optional<std::uint64_t> BusTimes::at(Position now) {
  while (!counted_.empty() && counted_.front().instruction <= now.instruction) {
    const Counted next = counted_.front();
    counted_.pop_front();
    if (next.instruction == now.instruction) note(next.clock, now);
  }
  return clock_ && position_ == now ? clock_ : std::nullopt;
}

std::optional<std::uint64_t> BusTimes::take(Position now) {
  const std::optional<std::uint64_t> clock = at(now);
  clock_.reset();
  return clock;
}

}  // namespace citcat
