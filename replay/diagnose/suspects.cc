// Suspected causes that cannot be tried, because something is missing from the capture as a whole:
// a stretch of transactions, or the beginning.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "events/machine/cpu_place.h"
#include "replay/diagnose/cause_prices.h"
#include "replay/diagnose/cause_table.h"
#include "replay/diagnose/emulator_differences.h"
#include "replay/infer/places/interrupt_evidence.h"

namespace citcat {
namespace {

/// A run that fails so early may have begun elsewhere; instructions.
constexpr std::uint64_t kEarly = 64;
/// Interrupts whose frames are compared with the state.
constexpr std::size_t kMostFrames = 256;

Cause missing_stretch(const CauseContext& context) {
  Cause cause;
  cause.kind = CauseKind::missing_transactions;
  cause.price = kSuspected;
  cause.text = "the capture may lack transactions";
  if (!context.upcoming().empty()) {
    const BusTransaction& next = context.upcoming().front();
    cause.text += fmt::format(" before transaction {}", next.index);
    if (next.has(kPositionKnown) && context.divergence().position < next.position) {
      cause.text +=
          fmt::format(": those of instructions {} to {}", context.divergence().position.instruction,
                      next.position.instruction);
    }
  }
  cause.text += ". Does the clock or the file jump there?";
  return cause;
}

/// Whether it was an emulator that was recorded, by the monitor inside it: no transaction gets lost
/// on that way.
bool is_of_monitor(const Recording& recording) { return recording.provenance.format == "machine"; }

/// What is known of the last instructions of the run; "" for nothing.
std::string_view known_difference(const CauseContext& context) {
  constexpr std::size_t kNear = 4;
  const auto& steps = context.history().steps();
  for (std::size_t n = 0; n < std::min(kNear, steps.size()); ++n) {
    const HistoryStep& step = steps[steps.size() - 1 - n];
    const std::string_view known = emulator_difference(step.code(), step.bits);
    if (!known.empty()) return known;
  }
  return "";
}

Cause difference_of_emulator(std::string_view what) {
  Cause cause;
  cause.kind = CauseKind::emulator_difference;
  cause.price = kSuspected;
  cause.text = fmt::format(
      "the emulator differs from processors here: {} (docs/monitor.md, Where replays may diverge)",
      what);
  return cause;
}

/// An interrupt that pushes the flags, CS and IP that the state has: there the state holds.
std::optional<Cause> start_at_interrupt(const CauseContext& context) {
  const CpuState& state = context.recording().initial;
  const bool shows_reads = context.recording().bus.form == CacheForm::none;
  const auto frames =
      scan_interrupts(context.schedule(), shows_reads, *context.trials().open_evidence());
  for (std::size_t i = 0; i < std::min(kMostFrames, context.schedule().interrupts.size()); ++i) {
    const Interrupt& interrupt = context.schedule().interrupts[i];
    const bool at_start = interrupt.position_known && interrupt.position == Position{};
    const InterruptEvidence& frame = frames[i];
    const std::uint64_t ip = instruction_pointer(state);
    const bool fits = frame.stores(ip, ip > 0xffffffff ? 8
                                       : ip > 0xffff   ? 4
                                                       : 2) &&
                      frame.stores(state.segment[kCs].selector, 2) &&
                      frame.stores(state.eflags & 0xffff, 2);
    if (at_start || !fits) continue;
    Cause cause;
    cause.kind = CauseKind::wrong_start;
    cause.price = kSuspected;
    cause.text = fmt::format(
        "the state is that of transaction {}, whose interrupt pushes its flags, CS and IP: import "
        "with --start transaction:{}",
        interrupt.transaction, interrupt.transaction);
    return cause;
  }
  return std::nullopt;
}

/// The code at the state's CS:IP is not fetched at the start, but later or never.
std::optional<Cause> start_at_fetch(const CauseContext& context) {
  constexpr std::uint64_t kAtStart = 16, kFirstInstructions = 8;
  // What an interrupt at the start does comes before it, and what was prefetched is not fetched.
  const auto& interrupts = context.schedule().interrupts;
  const bool interrupted = !interrupts.empty() && interrupts.front().position_known &&
                           interrupts.front().position == Position{};
  if (interrupted || context.divergence().position.instruction > kFirstInstructions)
    return std::nullopt;
  const CpuState& state = context.recording().initial;
  const LinearAddr linear = next_instruction(state);
  const auto& steps = context.history().steps();
  const bool known = !steps.empty() && steps.front().kind != HistoryStep::Kind::external;
  const PhysAddr at = known && steps.front().linear == linear
                          ? context.memory().captured(steps.front().physical)
                          : PhysAddr{linear.value}.masked32(context.recording().bus.address_mask);
  std::optional<std::uint64_t> first, fetched;
  const auto evidence = context.trials().open_evidence();
  for (BusTransaction t; evidence->next(t) && !fetched;) {
    if (!first) first = t.index;
    const bool fetch = t.op == BusOp::code_read || t.has(kLine);
    if (fetch && at.is_within32(t.address, t.size)) fetched = t.index;
  }
  if (fetched && *fetched < *first + kAtStart) return std::nullopt;
  Cause cause;
  cause.kind = CauseKind::wrong_start;
  cause.price = kSuspected;
  cause.text = fmt::format("the state's CS:IP, {:08x}, is not what is fetched first", at.value);
  cause.text += fetched
                    ? fmt::format(
                          ", but by transaction {}: does the state hold there "
                          "(--start transaction:{})?",
                          *fetched, *fetched)
                    : ", nor later: does the capture begin after the place that the state is of?";
  return cause;
}

}  // namespace

std::vector<Cause> suspected_causes(const CauseContext& context) {
  std::vector<Cause> found;
  const bool early =
      context.trials().history_from_start() && context.divergence().position.instruction <= kEarly;
  if (early) {
    if (auto start = start_at_interrupt(context)) found.push_back(std::move(*start));
    if (auto start = start_at_fetch(context)) found.push_back(std::move(*start));
  }
  // A value that differs where everything else is as it should be is no stretch that is missing.
  if (!context.mismatches().empty()) return found;
  const bool of_monitor = is_of_monitor(context.recording());
  const std::string_view known = of_monitor ? known_difference(context) : "";
  if (!known.empty()) found.push_back(difference_of_emulator(known));
  found.push_back(missing_stretch(context));
  if (of_monitor && known.empty())
    found.push_back(difference_of_emulator("QEMU checks neither limits nor types of segments"));
  return found;
}

}  // namespace citcat
