#include "replay/diagnose/run_history.h"

#include <algorithm>
#include <utility>

#include "replay/machine/code_place.h"

namespace citcat {

void RunHistory::begin(std::uint64_t port_reads, std::uint64_t external_writes) {
  steps_.clear();
  accesses_.clear();
  open_from_ = 0;
  fetched_size_ = 0;
  delivered_.reset();
  full_ = false;
  port_reads_ = port_reads;
  external_writes_ = external_writes;
  recording_ = true;
}

void RunHistory::end() {
  if (!recording_) return;
  recording_ = false;
  close_delivery();
  if (accesses_.size() == open_from_ && fetched_size_ == 0) return;
  const std::uint32_t size = std::min<std::uint32_t>(fetched_size_, kMaxInstructionBytes);
  HistoryStep& step = close(HistoryStep::Kind::unfinished, open_at_);
  step.physical = fetched_;
  step.linear = fetched_linear_;
  step.length = static_cast<std::uint8_t>(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    step.bytes[i] = machine_->memory().defined_byte(fetched_.plus32(i)).value_or(0);
  }
}

void RunHistory::add(const HistoryAccess& access, Position now) {
  if (!recording_) return;
  open_at_ = now;
  accesses_.push_back(access);
}

HistoryStep& RunHistory::close(HistoryStep::Kind kind, Position now) {
  if (steps_.size() == kMostSteps) {
    // The younger half is worth more than what comes after the end of a list.
    const std::size_t half = steps_.size() / 2;
    const std::uint32_t dropped = steps_[half].first_access;
    steps_.erase(steps_.begin(), steps_.begin() + static_cast<std::ptrdiff_t>(half));
    accesses_.erase(accesses_.begin(), accesses_.begin() + dropped);
    for (HistoryStep& step : steps_) step.first_access -= dropped;
    open_from_ -= dropped;
    full_ = true;
  }
  HistoryStep& step = steps_.emplace_back();
  step.kind = kind;
  step.position = now;
  step.bits = bits_;
  step.first_access = static_cast<std::uint32_t>(open_from_);
  step.accesses = static_cast<std::uint32_t>(accesses_.size() - open_from_);
  open_from_ = accesses_.size();
  fetched_size_ = 0;
  return step;
}

void RunHistory::instruction(const ExecutedInstruction& e, Position now) {
  if (!recording_) return;
  HistoryStep& step = close(HistoryStep::Kind::instruction, now);
  step.linear = e.linear;
  step.physical = e.physical;
  step.length = e.info->length;
  step.bytes = e.info->bytes;
  step.instruction_class = e.info->kind;
  step.flag_rule = e.info->flag_rule;
}

void RunHistory::fetch(PhysAddr a, std::uint32_t size, Position now) {
  if (!recording_) return;
  close_delivery();
  open_at_ = now;
  // An instruction across two pages is fetched in two pieces, the first one first.
  if (fetched_size_ == 0) {
    const Engine& engine = machine_->engine();
    fetched_ = a;
    fetched_linear_ = code_address(engine);
    bits_ = code_bits(engine);
  }
  fetched_size_ += size;
}

void RunHistory::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  const auto what =
      kind == AccessKind::walk ? HistoryAccess::Kind::walk : HistoryAccess::Kind::read;
  if (recording_) add({what, machine_->memory().captured(a), size, 0, 0}, now);
}

void RunHistory::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                       Position now) {
  if (!recording_ || kind == AccessKind::walk) return;
  HistoryAccess access{HistoryAccess::Kind::write, machine_->memory().captured(a),
                       static_cast<std::uint32_t>(bytes.size()), 0, 0};
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 8); i-- > 0;) {
    access.value = access.value << 8 | bytes[i];
  }
  add(access, now);
}

/// Each captured read that the access takes is an access of the history: each may be wrong alone.
void RunHistory::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                         Position now) {
  if (!recording_) return;
  PortAccess access(port_bus_, port, size);
  while (!access.complete() && port_reads_ < events_.io_reads.size()) {
    const IoRead part = events_.io_reads[port_reads_];
    const auto offset = access.take(PhysAddr{part.port}, part.size);
    if (!offset) return;
    add({HistoryAccess::Kind::port_read, PhysAddr{part.port}, part.size, port_reads_++,
         part_of(value, *offset, part.size)},
        now);
  }
}

void RunHistory::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) {
  if (recording_) add({HistoryAccess::Kind::port_write, PhysAddr{port}, size, 0, value}, now);
}

void RunHistory::delivered(const DeliveredEvent& event, Position now) {
  if (!recording_) return;
  close_delivery();
  delivered_ = {now, event.eip};
}

/// What is stored between a delivery and the handler's first instruction is its frame.
void RunHistory::close_delivery() {
  if (!delivered_) return;
  const auto [now, eip] = *std::exchange(delivered_, std::nullopt);
  close(HistoryStep::Kind::delivery, now).linear = LinearAddr{eip};
}

void RunHistory::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  if (!recording_) return;
  add({HistoryAccess::Kind::external, a, static_cast<std::uint32_t>(bytes.size()),
       external_writes_++, 0},
      now);
  close(HistoryStep::Kind::external, now);
}

}  // namespace citcat
