#include "cli/commands/replay_signals.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "events/position_text.h"

namespace citcat {

namespace {

/// Interrupts in one another that are remembered: some end without a return.
constexpr std::size_t kMostInterrupts = 64;
/// Steps that wait for a clock; more share the one before them.
constexpr std::size_t kMostWaiting = std::size_t{1} << 20;

TraceReaderOptions with_clocks() {
  TraceReaderOptions options;
  options.clocks = options.events = options.process_records = true;
  return options;
}

bool is_interrupt(KtNote::Kind kind) {
  switch (kind) {
    case KtNote::Kind::exception:
    case KtNote::Kind::external:
    case KtNote::Kind::software:
    case KtNote::Kind::nmi:
    case KtNote::Kind::smi:
      return true;
    default:
      return false;
  }
}

bool returns_from_interrupt(const std::string& text) {
  return text.starts_with("iret") || text.starts_with("rsm");
}

}  // namespace

ReplaySignals::ReplaySignals(const std::string& recording) : reader_(recording, with_clocks()) {}

std::vector<ExtraSignals::Signal> ReplaySignals::signals() const {
  return {{"instruction", 0}, {"address", 32},   {"position", 0}, {"process", 0},
          {"interrupt", 0},   {"divergence", 1}, {"reason", 0}};
}

bool ReplaySignals::next(Change& out) {
  while (changes_.empty() && !ended_) read_on();
  if (changes_.empty()) return false;
  out = std::move(changes_.front());
  changes_.pop_front();
  return true;
}

void ReplaySignals::read_on() {
  TraceRecord record;
  try {
    if (!reader_.next(record)) {
      flush_waiting(clock_);
      ended_ = true;
      return;
    }
  } catch (const TraceDiverged& diverged) {
    return diverge(diverged);
  }
  Step step = step_of(record);
  if (step.empty()) return;
  if (!record.clock) {
    waiting_.push_back(std::move(step));
    if (waiting_.size() > kMostWaiting) flush_waiting(clock_);
    return;
  }
  // What the bus shows late, as posted writes, is not shown before what it came after.
  const std::uint64_t clock = std::max(*record.clock, clock_);
  flush_waiting(clock);
  put(step, clock);
}

ReplaySignals::Step ReplaySignals::step_of(const TraceRecord& record) {
  if (record.is_event) {
    if (!is_interrupt(record.event.kind)) return {};
    begin_interrupt(kt_note_text(record.event));
    return {{0, kInterrupt, 0, interrupts_.back()}};
  }
  const KtRecord& r = record.record;
  if (r.kind == KtRecord::Kind::process) return {{0, kProcess, 0, fmt::format("{:x}", r.pid)}};
  if (r.kind != KtRecord::Kind::instruction) return {};
  Step step;
  if (std::exchange(returned_, false)) {
    if (!interrupts_.empty()) interrupts_.pop_back();
    step.push_back({0, kInterrupt, 0, interrupts_.empty() ? "-" : interrupts_.back()});
  }
  const std::string text = text_.instruction(record);
  returned_ = returns_from_interrupt(text);
  step.push_back({0, kInstruction, 0, text});
  step.push_back({0, kAddress, r.instruction.eip, ""});
  step.push_back({0, kPosition, 0, position_text(record.position)});
  return step;
}

void ReplaySignals::begin_interrupt(std::string name) {
  if (interrupts_.size() == kMostInterrupts) interrupts_.erase(interrupts_.begin());
  interrupts_.push_back(std::move(name));
}

void ReplaySignals::diverge(const TraceDiverged& diverged) {
  const std::uint64_t clock = std::max(diverged.clock().value_or(clock_), clock_);
  flush_waiting(clock);
  Step step = {{0, kDivergence, 1, ""}, {0, kReason, 0, diverged.reason()}};
  put(step, clock);
  divergence_ = diverged.what();
  ended_ = true;
}

/// Those that wait are put between the last one and `until`.
void ReplaySignals::flush_waiting(std::uint64_t until) {
  const std::uint64_t from = any_ ? clock_ : until;
  const std::uint64_t parts = waiting_.size() + 1;
  for (std::uint64_t i = 1; !waiting_.empty(); ++i) {
    put(waiting_.front(), from + (until - from) * i / parts);
    waiting_.pop_front();
  }
}

void ReplaySignals::put(Step& step, std::uint64_t clock) {
  any_ = true;
  clock_ = clock;
  for (Change& change : step) {
    change.clock = clock;
    changes_.push_back(std::move(change));
  }
}

}  // namespace citcat
