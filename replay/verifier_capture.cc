// The captured side: transactions as they come, and what waits for the replay.

#include <algorithm>

#include "replay/verifier.h"

namespace citcat {

namespace {

/// How far ahead of what is compared memory is asked for: some lines, or several hundred of the
/// host's instructions.
constexpr std::size_t kFetchedAhead = 8;

}  // namespace

bool Verifier::read_ahead() {
  if (at_end_) return false;
  if (evidence_->next(ahead_.emplace())) {
    const std::span<const BusTransaction> upcoming = evidence_->upcoming();
    ahead_parts_ = 1;
    if (plain_ && ahead_->has(kLine)) join_line(upcoming);
    const std::size_t far = ahead_parts_ - 1 + kFetchedAhead;
    if (upcoming.size() > far) will_pull(upcoming[far]);
    return true;
  }
  ahead_.reset();
  at_end_ = true;
  return false;
}

/// A line that went over the bus in several transactions, the others the first of `upcoming`, is
/// compared as one, where no transaction of it is of interest.
void Verifier::join_line(std::span<const BusTransaction> upcoming) {
  BusTransaction& line = *ahead_;
  if (!line.has(kPositionKnown) || !options_.believed.empty()) return;
  // None is longer, or crosses a boundary of so many bytes.
  const std::uint32_t most = kMaxTransactionBytes - line.address.value % kMaxTransactionBytes;
  const std::uint32_t part = line.size;
  std::uint32_t size = part;
  for (const BusTransaction& t : upcoming) {
    const bool follows = t.address.value - line.address.value == size && t.op == line.op &&
                         t.flags == line.flags && t.size == part && t.position == line.position &&
                         t.index == line.index + ahead_parts_;
    if (!follows || size + part > most) break;
    // Of what is read nothing is kept.
    if (t.op == BusOp::data_write) std::copy_n(t.data.begin(), part, line.data.begin() + size);
    size += part;
    ++ahead_parts_;
  }
  if (ahead_parts_ == 1) return;
  line.size = static_cast<std::uint8_t>(size);
  line.index += ahead_parts_ - 1u;
  evidence_->skip(ahead_parts_ - 1u);
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
      diverged(machine_->position(), "counts of instructions that go back", &t, "");
    }
    pulled_ = t.position;
  }
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
        window_lines_[t.address.value / 16].push_back(t);
        settle_line(t.address.value / 16);
      } else {
        writes_.push_back({t, all_bytes(t.size)});
      }
      break;
    case BusOp::io_read:
    case BusOp::io_write:
      io_.push_back(t);
      break;
    case BusOp::halt:
    case BusOp::shutdown:
    case BusOp::flush:
      specials_.push_back(t);
      break;
    case BusOp::instruction_start:
      starts_.push_back(t);
      break;
    case BusOp::interrupt_acknowledge:
      ++interrupts_pulled_;
      break;
    case BusOp::data_read:
      // A device address that is read again is judged by what the bus shows.
      if (t.has(kUncacheable) && !device_bytes_.empty()) {
        for (std::uint32_t i = 0; i < t.size; ++i) device_bytes_.erase(t.address.value + i);
      }
      break;
    default:
      break;
  }
}

bool Verifier::at_barrier() const {
  return !counted_ && recording_.bus.form == CacheForm::write_back &&
         (!io_.empty() || interrupts_pulled_ > interrupts_seen_);
}

void Verifier::pull_through(Position position) {
  while (!at_barrier() && !has_position_beyond(position) && writes_.size() < kWriteWindow &&
         pull()) {
  }
}

}  // namespace citcat
