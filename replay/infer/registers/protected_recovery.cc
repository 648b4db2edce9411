#include "replay/infer/registers/protected_recovery.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "formats/io/error.h"
#include "replay/infer/registers/protected_search.h"
#include "replay/infer/registers/recovery_rounds.h"

namespace citcat {
namespace {

constexpr std::size_t kFirstVector = 160, kVectorBytes = 256;  // SDM vol. 1, table 10-2

/// Where they are in an image.
std::bitset<kFxBytes> vector_registers() {
  return ~std::bitset<kFxBytes>() >> (kFxBytes - kVectorBytes) << kFirstVector;
}

}  // namespace

RecoveryOutcome ProtectedRecovery::replay(bool strict) {
  if (!is_spent(time_)) ++replays_;
  fill_state();
  return run_trial(recording_, evidence_, {!entry_.changes_level(), strict, tried_, time_});
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
      if (save.where.size < (entry_.long_mode ? 8 : 4) && !segment) continue;
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

/// A later image of the floating-point state, in which the replay has other bytes than the bus.
/// Those that nothing has changed since the interrupt are known by it: with others in their places
/// at the start the replay stores those.
bool ProtectedRecovery::take_image(const RecoveryOutcome& now) {
  if (!now.difference || !now.different_fx) return false;
  const DifferentFx& image = *now.different_fx;
  const auto& initial = recording_.initial.fx;
  std::bitset<kFxBytes> open;
  for (std::size_t i = 0; i < kFxBytes; ++i) {
    open[i] = image.stored[i] && image.shown[i] != image.replayed[i] &&
              image.replayed[i] == initial[i] && !learnt_.contains(i);
  }
  // Registers that are zero here, and in use there.
  if (open.none() && image.may_leave_out) {
    open = vector_registers();
    for (const auto& [at, byte] : learnt_) open[at] = false;
  }
  if (open.none()) return false;
  // What control and status words are made of cannot be tried: others raise exceptions.
  constexpr std::size_t kRegisters = 32;
  is_other_ = open >> kRegisters << kRegisters;
  const FxImage before = initial;
  const RecoveryOutcome other = replay();
  const std::bitset<kFxBytes> tried = std::exchange(is_other_, {});
  if (!other.different_fx || other.different_fx->transaction != image.transaction) return false;
  const DifferentFx& there = *other.different_fx;
  bool more = false;
  for (std::size_t i = 0; i < kFxBytes; ++i) {
    if (!open[i] || !there.stored[i]) continue;
    if (tried[i] && there.replayed[i] == before[i]) continue;
    learnt_[i] = {there.shown[i], image.transaction};
    more = true;
  }
  return more;
}

/// Without CR4.OSXSAVE there is no XSAVE and no XGETBV. Systems set it where the processor has
/// them.
bool ProtectedRecovery::allow_xsave(const RecoveryOutcome& now) {
  if (!now.undefined || !entry_.long_mode || uses_xsave_ || given_.has("cr4")) return false;
  uses_xsave_ = true;
  if (replay().agreed > now.agreed) return true;
  uses_xsave_ = false;
  return false;
}

/// Changes one register so that the replay agrees further; false when none does that.
bool ProtectedRecovery::improve(const RecoveryOutcome& now) {
  if (!now.difference) return false;
  std::optional<Guess> best;
  std::uint64_t most = now.agreed;
  bool tied = false;
  for (Guess& guess : likely_guesses(now)) {
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

/// A register, or an entry of a page table. In long mode registers come first: bases of segments
/// begin with a page, and from those that are not known any page could be mapped to.
bool ProtectedRecovery::explain(const RecoveryOutcome& now) {
  if (entry_.long_mode) return improve(now) || supply_entry(now);
  return supply_entry(now) || improve(now);
}

/// Solves as far as the interrupts have places.
void ProtectedRecovery::solve() {
  constexpr int kMostSteps = 64;
  for (int step = 0; step < kMostSteps; ++step) {
    const RecoveryOutcome now = replay();
    failure_.reset();
    if (take_saves(now)) continue;
    if (now.ok()) return;
    if (allow_xsave(now) || take_image(now)) continue;
    if (share_entries(now) || explain(now)) continue;
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
  u.value = u.kind == ProtectedUnknown::Kind::segment ? u.value ^ 0x18 : u.value ^ kOtherValue;
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
    u.value = u.kind == ProtectedUnknown::Kind::segment ? u.value ^ 0x18 : u.value ^ kOtherValue;
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

/// Halves of vector registers of which a later image has told.
void ProtectedRecovery::report_vectors(RecoveredState& out) const {
  constexpr std::size_t kHalf = 8;
  for (std::size_t n = 0; n < kVectorBytes / kHalf; ++n) {
    const std::size_t at = kFirstVector + kHalf * n;
    const auto first = learnt_.lower_bound(at);
    if (first == learnt_.end() || first->first >= at + kHalf) continue;
    std::uint64_t value = 0;
    std::memcpy(&value, &recording_.initial.fx[at], sizeof value);
    out.registers.push_back({"xmm" + std::to_string(n / 2) + (n % 2 == 0 ? ".low" : ".high"), value,
                             RegisterSource::solved, first->second.transaction});
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
  report_vectors(out);
  if ((!fx_ || !fx_->whole) && !given_.has_fx()) unknown.push_back("fx");
}

/// Page-table entries that the recording needs besides, as hints.
std::vector<Hint> ProtectedRecovery::supplied_memory() const {
  std::vector<Hint> hints;
  for (const TableEntry& entry : supplied_) {
    Hint hint;
    hint.kind = Hint::Kind::memory;
    hint.address = entry.at;
    const auto data = entry.data();
    hint.data.assign(data.begin(), data.begin() + entry.bytes);
    hint.because = "page-table entry that the processor had in its TLB: assumed";
    hints.push_back(std::move(hint));
  }
  return hints;
}

/// The registers that the first interrupt pushed.
std::vector<RecoveredRegister> ProtectedRecovery::frame_registers() const {
  const std::uint64_t interrupt = recording_.interrupts.front().transaction;
  const bool wide = entry_.long_mode;
  std::vector<RecoveredRegister> registers = {
      {"cs", entry_.cs, RegisterSource::frame, interrupt},
      {wide ? "rip" : "eip", entry_.ip, RegisterSource::frame, interrupt},
      {wide ? "rflags" : "eflags", entry_.flags, RegisterSource::frame, interrupt}};
  if (entry_.stack) {
    registers.push_back({"ss", entry_.stack->ss, RegisterSource::frame, interrupt});
  }
  return registers;
}

/// The page tables, and what systems set.
std::vector<RecoveredRegister> ProtectedRecovery::system_registers(const CpuState& state) const {
  std::vector<RecoveredRegister> registers;
  const auto add = [&](const char* name, RegisterSource source, std::uint64_t transaction) {
    registers.push_back({name, *get_register(state, name), source, transaction});
  };
  const auto cr3 = may_be_another_space() ? RegisterSource::assumed : RegisterSource::solved;
  add("cr3", cr3, recording_.interrupts.front().transaction);
  for (const char* name : {"cr0", "cr4"}) add(name, RegisterSource::assumed, kNoTransaction);
  if (entry_.long_mode) add("efer", RegisterSource::assumed, kNoTransaction);
  if (uses_xsave_) add("xcr0", RegisterSource::assumed, kNoTransaction);
  return registers;
}

RecoveredState ProtectedRecovery::result() {
  fill_state();
  RecoveredState result;
  result.state = recording_.initial;
  result.state.ram_bytes = given_.ram_bytes();  // as far as the capture reaches is not its size
  result.divergence = failure_;
  if (has_ended(time_)) result.given_up = time_->text();
  result.replays = replays_;
  result.memory = supplied_memory();
  result.registers = frame_registers();
  result.registers.insert(result.registers.end(), found_.begin(), found_.end());
  std::vector<std::string> unknown{"cr2",      "ldtr", "gdtr.limit", "idtr.limit", "tr",
                                   "tr.limit", "dr0",  "dr1",        "dr2",        "dr3",
                                   "dr6",      "dr7",  "smbase",     "tsc",        "cr8"};
  if (!uses_xsave_) unknown.emplace_back("xcr0");
  report_unknowns(result, unknown);
  for (RecoveredRegister& r : system_registers(result.state)) result.registers.push_back(r);
  std::erase_if(result.registers,
                [this](const RecoveredRegister& r) { return given_.has(r.name); });
  for (const std::string& name : register_names(recording_.initial.model)) {
    const auto given = given_.value(name);
    if (given) {
      result.registers.push_back({name, *given, RegisterSource::given, kNoTransaction});
    } else if (std::find(unknown.begin(), unknown.end(), name) != unknown.end()) {
      result.state.unknown.push_back(name);
    }
  }
  recording_.initial = result.state;
  return result;
}

bool ProtectedRecovery::read_tables() {
  const auto read = [&](PhysAddr at) { return known_dword(recording_.image, at); };
  pages_ = space_.paging ? PageMap(tables_, space_.cr3, read) : PageMap();
  return find_tables();
}

/// Looks for registers with which the run agrees in this address space; false where it cannot be
/// the one.
bool ProtectedRecovery::attempt(const AddressSpace& space) {
  space_ = space;
  recording_.image = image_.clone();
  supplied_.clear();
  fx_.reset();
  learnt_.clear();
  uses_xsave_ = false;
  failure_.reset();
  walked_ = walked_pages(recording_, *evidence_(), tables_, spaces_);
  // Where page tables are isolated, directories of long mode do not share all that is the system's.
  bool found = entry_.long_mode && read_tables();
  if (!found) {
    supply_entry_pages();
    found = read_tables();
  }
  if (!found) return false;
  take_back_placements(recording_, counted_);
  prepare_unknowns();
  solve_all();
  return true;
}

/// Bytes of memory that the capture reaches over, without devices above.
std::uint32_t ProtectedRecovery::memory_reached() const {
  constexpr std::uint32_t kMostPages = 0x40000;  // 1 GiB
  std::uint32_t last = 0;
  const auto note = [&](FrameNumber page) {
    if (page < kMostPages) last = std::max(last, static_cast<std::uint32_t>(page));
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

/// What was given must be what the interrupt pushed. RF is set in a frame alone (SDM vol. 3,
/// 19.3.1.1).
void ProtectedRecovery::require_frame_as_given() const {
  constexpr std::uint64_t kResume = 1u << 16;
  std::vector<RecoveredRegister> frame = frame_registers();
  if (entry_.stack) {
    frame.push_back({entry_.long_mode ? "rsp" : "esp", entry_.stack->sp, RegisterSource::frame,
                     kNoTransaction});
  }
  for (const RecoveredRegister& r : frame) {
    const auto given = given_.value(r.name);
    const std::uint64_t ignored = r.name == "rflags" ? kResume : 0;
    if (!given || (*given | ignored) == (r.value | ignored)) continue;
    char text[128];
    std::snprintf(text, sizeof text,
                  "the state that is given has %s %llx, the interrupt shows %llx", r.name.c_str(),
                  static_cast<unsigned long long>(*given),
                  static_cast<unsigned long long>(r.value));
    throw UsageError(text);
  }
}

RecoveredState ProtectedRecovery::run() {
  counted_ = begin_at_first_interrupt(recording_);
  ram_bytes_ = memory_reached();
  image_ = recording_.image.clone();
  require_frame_as_given();
  spaces_ = find_address_spaces(recording_, evidence_, entry_);
  if (const auto cr3 = given_.value("cr3")) {
    spaces_ = {{true, PhysAddr{*cr3}.page_begin().value}};
  }
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
