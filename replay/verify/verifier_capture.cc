// The captured side: transactions as they come, and what waits for the replay.

#include <algorithm>

#include "replay/verify/verifier.h"

namespace citcat {

namespace {

/// How many transactions ahead of what is compared memory is asked for: some thousand of the host's
/// instructions.
constexpr std::size_t kFetchedAhead = 4;

}  // namespace

bool Verifier::read_ahead() {
  if (at_end_) return false;
  BusTransaction& t = ahead_.emplace();
  ahead_parts_ = joins_lines_ ? evidence_->next_line(t) : std::uint8_t{evidence_->next(t)};
  if (ahead_parts_ == 0) {
    ahead_.reset();
    at_end_ = true;
    return false;
  }
  const std::span<const BusTransaction> upcoming = evidence_->upcoming();
  if (upcoming.size() > kFetchedAhead) will_pull(upcoming[kFetchedAhead]);
  return true;
}

/// `t` comes before long: what both sides hold there is fetched from memory ahead.
void Verifier::will_pull(const BusTransaction& t) const {
  if (!t.is_memory()) return;
  if (reads_ != nullptr) reads_->will_capture(t);
  __builtin_prefetch(machine_->memory().host(t.address));
}

bool Verifier::pull() {
  if (!look_ahead()) return false;
  const BusTransaction& t = *ahead_;
  // Only memory traffic tells how far the evidence reaches, and only when all of it is counted:
  // interrupts are often counted where nothing else is, and hardware instruction streams run ahead.
  if (t.is_memory()) {
    if (!t.has(kPositionKnown)) all_counted_ = false;
    counted_ = all_counted_;
    if (plain_ && t.position.instruction < pulled_.instruction) {
      stop_with({"counts of instructions that go back", t, ""}, machine_->position());
    }
    pulled_ = t.position;
  }
  pulled_index_ = t.index;
  sort_in(t);
  ahead_.reset();
  return true;
}

void Verifier::sort_in(const BusTransaction& t) {
  if (reads_ != nullptr) {
    if (t.op == BusOp::data_write) reads_->captured_write(t);
    if (t.op == BusOp::data_read || t.op == BusOp::code_read)
      reads_->captured_read(t, ahead_parts_);
  }
  switch (t.op) {
    case BusOp::data_write:
      if (t.has(kWriteBack) && t.has(kPositionKnown)) {
        lines_.push_back({t, all_bytes(t.size), ahead_parts_});
      } else if (t.has(kWriteBack)) {
        window_lines_[window_of(t.address)].push_back(t);
        settle_lines(window_of(t.address));
      } else {
        PendingWrite& w = writes_.emplace_back();
        w.t = t;
        w.unmatched = all_bytes(t.size);
      }
      break;
    case BusOp::io_read:
    case BusOp::io_write:
      ports_.expect(t);
      break;
    case BusOp::halt:
    case BusOp::shutdown:
    case BusOp::flush:
      specials_.expect(t);
      break;
    case BusOp::instruction_start:
      starts_.expect(t);
      break;
    case BusOp::interrupt_acknowledge:
      ++interrupts_pulled_;
      break;
    case BusOp::data_read:
      final_memory_.captured_read(t);
      break;
    default:
      break;
  }
}

bool Verifier::at_barrier() const {
  return !counted_ && recording_.bus.form == CacheForm::write_back &&
         (ports_.waiting() != 0 || interrupts_pulled_ > interrupts_seen_);
}

void Verifier::pull_through(Position position) {
  while (!at_barrier() && !has_position_beyond(position) && writes_.size() < kWriteWindow &&
         pull()) {
  }
}

}  // namespace citcat
