#include "replay/infer/protected_recovery.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/io/error.h"
#include "replay/infer/protected_search.h"
#include "replay/infer/recovery_rounds.h"

namespace citcat {

RecoveryOutcome ProtectedRecovery::replay(bool strict) {
  if (!is_spent(time_)) ++replays_;
  fill_state();
  return run_trial(recording_, evidence_, {!entry_.stack, strict, tried_, time_});
}

/// Registers that were stored before anything changed them. True when one of them was not known.
bool ProtectedRecovery::take_saves(const RecoveryOutcome& now) {
  bool more = false;
  for (const Saved& save : now.saved) {
    for (ProtectedUnknown& u : unknown_) {
      const bool segment = u.kind == ProtectedUnknown::Kind::segment;
      if ((!segment && u.kind != ProtectedUnknown::Kind::general) ||
          segment != save.where.is_segment || u.number != save.where.number ||
          u.source == RegisterSource::saved) {
        continue;
      }
      if (save.where.size < 4 && !segment) continue;
      if (u.source == RegisterSource::solved && u.value == save.value) continue;
      u.value = save.value;
      u.source = RegisterSource::saved;
      u.transaction = save.transaction;
      more = true;
    }
  }
  if (now.fx && !fx_) {
    fx_ = now.fx;
    more = true;
  }
  return more;
}

/// Changes one register so that the replay agrees further; false when none does that.
bool ProtectedRecovery::improve(const RecoveryOutcome& now) {
  if (!now.difference) return false;
  std::optional<Guess> best;
  std::uint64_t most = now.agreed;
  bool tied = false;
  for (Guess& guess : guesses(now)) {
    const ProtectedUnknown before = std::exchange(*guess.unknown, guess.with);
    const RecoveryOutcome outcome = replay();
    *guess.unknown = before;
    if (is_spent(time_)) break;
    // A segment that is not flat is no match for a register that explains it as well.
    const bool likely = best && (best->with.has_base || !guess.with.has_base);
    const bool other = likely && (best->unknown != guess.unknown || !(best->with == guess.with));
    if (best && outcome.agreed == most) tied |= other;
    if (outcome.agreed <= most && !(outcome.ok() && !best)) continue;
    most = outcome.agreed;
    best = guess;
    tied = false;
  }
  if (!best) return false;
  *best->unknown = best->with;
  best->unknown->source = tied ? RegisterSource::assumed : RegisterSource::solved;
  best->unknown->transaction = now.difference->expected.transaction;
  return true;
}

/// Solves as far as the interrupts have places.
void ProtectedRecovery::solve() {
  constexpr int kMostSteps = 64;
  for (int step = 0; step < kMostSteps; ++step) {
    const RecoveryOutcome now = replay();
    failure_.reset();
    if (take_saves(now)) continue;
    if (now.ok()) return;
    if (share_entries(now) || supply_entry(now) || improve(now)) continue;
    failure_ = describe(now);
    agreed_ = now.agreed;
    return;
  }
}

void ProtectedRecovery::solve_all() {
  failure_ = solve_and_place(
      recording_, evidence_,
      [this] {
        solve();
        return failure_;
      },
      [this] { return replay(); }, time_);
}

bool ProtectedRecovery::depends_on(ProtectedUnknown& u, const RecoveryOutcome& now) {
  const ProtectedUnknown before = u;
  u.value = u.kind == ProtectedUnknown::Kind::segment ? u.value ^ 0x18 : u.value ^ 0x5a31a5c3;
  const bool depends = !replay().same(now);
  u = before;
  return depends;
}

/// Registers that were never needed: with other values in all of them the replay is the same.
void ProtectedRecovery::find_free() {
  const RecoveryOutcome now = replay();
  std::vector<ProtectedUnknown> before = unknown_;
  bool any = false;
  for (ProtectedUnknown& u : unknown_) {
    if (!u.is_open()) continue;
    any = true;
    u.value = u.kind == ProtectedUnknown::Kind::segment ? u.value ^ 0x18 : u.value ^ 0x5a31a5c3;
  }
  const bool free = !any || replay().same(now);
  unknown_ = before;
  if (free) return;
  // The value that nobody chose is the one that fits.
  for (ProtectedUnknown& u : unknown_) {
    const bool needed = u.is_open() && depends_on(u, now);
    if (is_spent(time_)) return;
    if (needed) u.source = RegisterSource::assumed;
  }
}

/// What the guessed registers turned out to be, and the names of those that are not known.
void ProtectedRecovery::report_unknowns(RecoveredState& out, std::vector<std::string>& unknown) {
  using Kind = ProtectedUnknown::Kind;
  for (const ProtectedUnknown& u : unknown_) {
    RecoveredRegister r{u.name, u.value, u.source, u.transaction};
    const bool base_only = u.kind == Kind::segment && u.has_base;
    if (u.wants_selector()) r.source = RegisterSource::assumed;
    out.registers.push_back(r);
    if (base_only) out.registers.push_back({u.name + ".base", u.base, u.source, u.transaction});
    if (u.source == RegisterSource::free && u.kind != Kind::msr) unknown.push_back(u.name);
  }
  if (fx_) {
    std::uint32_t mask = 0;
    std::memcpy(&mask, &fx_->image[kMxcsrMask], sizeof mask);
    out.registers.push_back({"mxcsr_mask", mask, RegisterSource::saved, fx_->transaction});
  }
  if (!fx_ || !fx_->whole) unknown.push_back("fx");
}

/// Page-table entries that the recording needs besides, as hints.
std::vector<Hint> ProtectedRecovery::supplied_memory() const {
  std::vector<Hint> hints;
  for (const TableEntry& entry : supplied_) {
    Hint hint;
    hint.kind = Hint::Kind::memory;
    hint.address = entry.at;
    for (unsigned i = 0; i < 4; ++i) {
      hint.data.push_back(static_cast<std::uint8_t>(entry.value >> (8 * i)));
    }
    hint.because = "page-table entry that the processor had in its TLB: assumed";
    hints.push_back(std::move(hint));
  }
  return hints;
}

RecoveredState ProtectedRecovery::result() {
  fill_state();
  RecoveredState result;
  result.state = recording_.initial;
  result.state.ram_bytes = 0;  // as far as the capture reaches is not its size
  result.divergence = failure_;
  if (has_ended(time_)) result.given_up = time_->text();
  result.replays = replays_;
  result.memory = supplied_memory();
  const std::uint64_t interrupt = recording_.interrupts.front().transaction;
  result.registers = {{"cs", entry_.cs, RegisterSource::frame, interrupt},
                      {"eip", entry_.eip, RegisterSource::frame, interrupt},
                      {"eflags", entry_.eflags, RegisterSource::frame, interrupt}};
  if (entry_.stack) {
    result.registers.push_back({"ss", entry_.stack->ss, RegisterSource::frame, interrupt});
  }
  result.registers.insert(result.registers.end(), found_.begin(), found_.end());
  std::vector<std::string> unknown{"cr2",      "ldtr", "gdtr.limit", "idtr.limit", "tr",
                                   "tr.limit", "dr0",  "dr1",        "dr2",        "dr3",
                                   "dr6",      "dr7",  "smbase",     "tsc"};
  report_unknowns(result, unknown);
  result.registers.push_back({"cr3", space_.cr3, RegisterSource::solved, interrupt});
  for (const char* name : {"cr0", "cr4"}) {
    const auto value = static_cast<std::uint32_t>(*get_register(result.state, name));
    result.registers.push_back({name, value, RegisterSource::assumed, kNoTransaction});
  }
  for (const std::string& name : register_names(recording_.initial.model)) {
    if (std::find(unknown.begin(), unknown.end(), name) != unknown.end()) {
      result.state.unknown.push_back(name);
    }
  }
  recording_.initial = result.state;
  return result;
}

/// Looks for registers with which the run agrees in this address space; false where it cannot be
/// the one.
bool ProtectedRecovery::attempt(const AddressSpace& space) {
  space_ = space;
  recording_.image = image_.clone();
  supplied_.clear();
  failure_.reset();
  const auto read = [&](PhysAddr at) { return known_dword(recording_.image, at); };
  supply_entry_pages();
  pages_ = space.paging ? PageMap(space.cr3, read) : PageMap();
  walked_ = walked_pages(recording_, *evidence_(), spaces_);
  if (!find_tables()) return false;
  take_back_placements(recording_, counted_);
  prepare_unknowns();
  solve_all();
  return true;
}

/// Bytes of memory that the capture reaches over, without devices above.
std::uint32_t ProtectedRecovery::memory_reached() const {
  constexpr std::uint32_t kMostPages = 0x40000;  // 1 GiB
  std::uint32_t last = 0;
  const auto note = [&](std::uint32_t page) {
    if (page < kMostPages) last = std::max(last, page);
  };
  for (const auto& [number, page] : recording_.image.pages()) note(number);
  const auto evidence = evidence_();
  for (BusTransaction t; evidence->next(t);) {
    if (t.is_memory()) note(t.address.page());
  }
  return (last + 1) * kPageSize;
}

/// The address space in which the run agrees, or the one in which it does so furthest.
void ProtectedRecovery::try_address_spaces() {
  std::optional<AddressSpace> best;
  std::uint64_t most = 0;
  for (const AddressSpace& space : spaces_) {
    if (!attempt(space)) continue;
    if (!failure_ || is_spent(time_)) return;
    if (best && agreed_ <= most) continue;
    most = agreed_;
    best = space;
  }
  if (!best) {
    throw UsageError(
        "the capture does not show the page tables that the interrupt was taken with: neither "
        "before it nor after it were all of them read or written on the bus");
  }
  attempt(*best);
}

RecoveredState ProtectedRecovery::run() {
  counted_ = begin_at_first_interrupt(recording_);
  ram_bytes_ = memory_reached();
  image_ = recording_.image.clone();
  spaces_ = find_address_spaces(recording_, evidence_, entry_);
  try_address_spaces();
  if (!failure_) {
    find_free();
    const RecoveryOutcome strict = replay(true);
    if (!strict.ok()) failure_ = describe(strict);
  }
  if (has_ended(time_)) failure_ = given_up(*time_);
  RecoveredState recovered = result();
  if (failure_) take_back_placements(recording_, counted_);
  recovered.recording = std::move(recording_);
  return recovered;
}

RecoveredState recover_protected_state(Recording recording, const EvidenceSource& evidence,
                                       const ProtectedEntry& entry, TimeBudget* time) {
  return ProtectedRecovery(std::move(recording), evidence, entry, time).run();
}

}  // namespace citcat
