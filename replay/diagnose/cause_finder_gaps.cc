// What a capture lacks whole: the stores of an SMI, a stretch of transactions, the beginning.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "replay/diagnose/cause_finder.h"
#include "replay/infer/interrupt_evidence.h"

namespace citcat {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};
// Intel SDM vol. 3, 34.4: where an SMI's handler begins and the state is saved, from SMBASE.
constexpr std::uint32_t kHandler = 0x8000, kSaveBegin = 0xfc00, kSaveEnd = 0x10000,
                        kRevision = 0xfefc;
constexpr const char* kSmbase = "smbase";
/// Transactions before and from the divergence among which the fetch of a handler is looked for: a
/// processor may have fetched what it did not execute, so that only the handler's first store need
/// be the difference.
constexpr std::size_t kLookedBack = 64, kLookedAt = 4;
/// Instructions before it that an SMI may stand at where no count tells.
constexpr std::size_t kMaxPlaces = 8;
/// Prices (cause_finder_memory.cc).
constexpr double kSmi = 1.2, kSuspected = 12;
/// A run that fails so early may have begun elsewhere; instructions.
constexpr std::uint64_t kEarly = 64;
/// Interrupts whose frames are compared with the state.
constexpr std::size_t kMaxFrames = 256;

}  // namespace

/// SMBASE, if this is the first fetch of an SMI's handler: where the replay has it, what it is
/// after reset, and where nothing tells it, any 32 KiB that a processor allows.
std::optional<std::uint32_t> CauseFinder::smbase_of(const BusTransaction& fetch) const {
  if (fetch.op != BusOp::code_read) return std::nullopt;
  const CpuState now = trials_.machine().save();
  for (const std::uint32_t base : {now.smbase, recording_.initial.smbase, kResetSmbase}) {
    if (base + kHandler - fetch.address.value < fetch.size) return base;
  }
  if (!get_register(recording_.initial, kSmbase)) return std::nullopt;
  if (fetch.address.value % kHandler != 0 || fetch.address.value < kHandler) return std::nullopt;
  return fetch.address.value - kHandler;
}

/// Code is fetched where the handler of an SMI begins, and the replay goes elsewhere: an SMI whose
/// stores were not captured, as the processor makes them.
void CauseFinder::unseen_smi() {
  if (trials_.machine().save().in_smm) return;
  if (upcoming_.empty()) return;
  const std::uint64_t back = std::min<std::uint64_t>(kLookedBack, upcoming_.front().index);
  const auto around =
      transactions_from(*trials_.open_evidence(), upcoming_.front().index - back, back + kLookedAt);
  for (const BusTransaction& fetch : around) {
    const auto base = smbase_of(fetch);
    if (!base) continue;
    for (const Position place : smi_places(fetch)) suspect_smi(place, fetch, *base);
    return;
  }
}

/// Where the SMI whose handler begins with this fetch may have been taken.
std::set<Position> CauseFinder::smi_places(const BusTransaction& fetch) const {
  std::set<Position> places{divergence_.position, {divergence_.position.instruction + 1, 0}};
  if (fetch.has(kPositionKnown)) {
    places.insert(fetch.position);
  } else if (fetch.index < upcoming_.front().index) {
    const auto& steps = history_.steps();
    for (std::size_t i = steps.size() - std::min(kMaxPlaces, steps.size()); i < steps.size(); ++i) {
      places.insert(steps[i].position);
    }
  }
  return places;
}

/// An SMI taken at `place`; `revision` tells the map of the state that it saves.
Cause CauseFinder::smi_cause(Position place, const BusTransaction& fetch, std::uint32_t base,
                             std::uint8_t revision) const {
  Hint smi;
  smi.kind = Hint::Kind::added_interrupt;
  smi.name = "smi";
  smi.transaction = fetch.index;
  smi.position = place;
  smi.value = revision;
  Cause cause;
  cause.kind = CauseKind::missing_interrupt;
  cause.text = fmt::format(
      "the capture lacks an SMI before instruction {}: code is fetched at SMBASE + 8000h, {:08x}",
      place.instruction, fetch.address.value);
  cause.hints.push_back(smi);
  cause.start = {place, fetch.index};
  cause.price = kSmi;
  const bool moved =
      base != recording_.initial.smbase || citcat::is_unknown(recording_.initial, kSmbase);
  if (moved && get_register(recording_.initial, kSmbase)) {
    Hint known;
    known.kind = Hint::Kind::register_value;
    known.name = kSmbase;
    known.value = base;
    cause.hints.push_back(known);
    cause.start = {{0, 0}, 0};
    cause.text += fmt::format(", SMBASE being {:x}", base);
  }
  return cause;
}

/// The stores that the processor makes at the SMI of `cause`; with `as_read` they hold what is
/// first read there, by RSM at the latest: what no manual tells of a saved state is in it too.
std::vector<Hint> CauseFinder::smi_stores(const Cause& cause, Position place,
                                          const BusTransaction& fetch, std::uint32_t base,
                                          bool as_read) {
  std::vector<Hint> stores;
  const RunHistory& done = trials_.observe(cause.hints, cause.start, place.instruction + 1);
  for (const HistoryStep& step : done.steps()) {
    for (const HistoryAccess& a : done.accesses(step)) {
      const std::uint32_t offset = a.address.value - base;
      if (a.kind != HistoryAccess::Kind::write || offset < kSaveBegin || offset >= kSaveEnd)
        continue;
      Hint& store = stores.emplace_back();
      store.kind = Hint::Kind::added_captured_write;
      store.transaction = fetch.index;
      store.position = place;
      store.address = a.address;
      for (std::uint32_t b = 0; b < a.size; ++b) {
        const auto own = static_cast<std::uint8_t>(a.value >> (8 * b));
        const auto read = recording_.image.byte(a.address + b);
        store.data.push_back(as_read ? read.value_or(own) : own);
      }
    }
  }
  return stores;
}

void CauseFinder::suspect_smi(Position place, const BusTransaction& fetch, std::uint32_t base) {
  const auto revision = recording_.image.byte(PhysAddr{base + kRevision});
  for (const bool as_read : {true, false}) {
    if (as_read && !revision) continue;
    Cause cause = smi_cause(place, fetch, base, as_read ? *revision : 0);
    // Where its stores stay in a cache, nothing more is missing.
    const bool cached = recording_.bus.form == CacheForm::write_back;
    if (cached) add(cause);
    const std::vector<Hint> stores = smi_stores(cause, place, fetch, base, as_read);
    if (stores.empty()) {
      if (!cached) add(std::move(cause));
      continue;
    }
    cause.text += fmt::format(", and it lacks the {} stores of it", stores.size());
    cause.hints.insert(cause.hints.end(), stores.begin(), stores.end());
    add(std::move(cause));
  }
}

/// Of causes that no hint repairs: those that what is known speaks for, likeliest first.
std::vector<Cause> CauseFinder::suspects() {
  std::vector<Cause> found;
  const bool early = trials_.history_from_start() && divergence_.position.instruction <= kEarly;
  if (early) {
    if (auto start = start_at_interrupt()) found.push_back(std::move(*start));
    if (auto start = start_at_fetch()) found.push_back(std::move(*start));
  }
  // A value that differs where everything else is as it should be is no stretch that is missing.
  if (mismatches_.empty()) found.push_back(missing_stretch());
  return found;
}

Cause CauseFinder::missing_stretch() const {
  Cause cause;
  cause.kind = CauseKind::missing_transactions;
  cause.price = kSuspected;
  cause.text = "the capture may lack transactions";
  if (!upcoming_.empty()) {
    const BusTransaction& next = upcoming_.front();
    cause.text += fmt::format(" before transaction {}", next.index);
    if (next.has(kPositionKnown) && divergence_.position < next.position) {
      cause.text += fmt::format(": those of instructions {} to {}",
                                divergence_.position.instruction, next.position.instruction);
    }
  }
  cause.text += ". Does the clock or the file jump there?";
  return cause;
}

/// An interrupt that pushes the flags, CS and IP that the state has: there the state holds.
std::optional<Cause> CauseFinder::start_at_interrupt() const {
  const CpuState& state = recording_.initial;
  const bool shows_reads = recording_.bus.form == CacheForm::none;
  const auto frames = scan_interrupts(schedule_, shows_reads, *trials_.open_evidence());
  for (std::size_t i = 0; i < std::min(kMaxFrames, schedule_.interrupts.size()); ++i) {
    const Interrupt& interrupt = schedule_.interrupts[i];
    const bool at_start = interrupt.position_known && interrupt.position == Position{};
    const InterruptEvidence& frame = frames[i];
    const bool fits = frame.stores(state.eip, state.eip > 0xffff ? 4 : 2) &&
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
std::optional<Cause> CauseFinder::start_at_fetch() const {
  constexpr std::uint64_t kAtStart = 16, kFirstInstructions = 8;
  // What an interrupt at the start does comes before it, and what was prefetched is not fetched.
  const auto& interrupts = schedule_.interrupts;
  const bool interrupted = !interrupts.empty() && interrupts.front().position_known &&
                           interrupts.front().position == Position{};
  if (interrupted || divergence_.position.instruction > kFirstInstructions) return std::nullopt;
  const CpuState& state = recording_.initial;
  const std::uint32_t linear = state.segment[kCs].base + state.eip;
  const auto& steps = history_.steps();
  const bool known = !steps.empty() && steps.front().kind != HistoryStep::Kind::external;
  const PhysAddr at = known && steps.front().linear == linear
                          ? trials_.machine().memory().captured(steps.front().physical)
                          : PhysAddr{linear & recording_.bus.address_mask};
  std::optional<std::uint64_t> first, fetched;
  const auto evidence = trials_.open_evidence();
  for (BusTransaction t; evidence->next(t) && !fetched;) {
    if (!first) first = t.index;
    const bool fetch = t.op == BusOp::code_read || t.has(kLine);
    if (fetch && at.value - t.address.value < t.size) fetched = t.index;
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
                    : ", nor later: does the capture begin behind the place that the state is of?";
  return cause;
}

}  // namespace citcat
