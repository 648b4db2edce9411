#include "replay/diagnose/cause_finder.h"

#include <algorithm>
#include <array>

namespace citcat {
namespace {

/// Instructions looked back over for where a value came from.
constexpr std::uint64_t kHistory = std::uint64_t{1} << 17;
/// Sources of a lineage that are worth trying.
constexpr std::size_t kMaxSources = 400;
/// Branches before the divergence whose decisions may have been wrong.
constexpr unsigned kDecisions = 48;
/// Steps before the divergence whose own inputs are suspect.
constexpr std::size_t kLastSteps = 3;

bool decides(InstructionClass c) {
  switch (c) {
    case InstructionClass::jcc:
    case InstructionClass::loop:
    case InstructionClass::jump:
    case InstructionClass::call:
    case InstructionClass::ret:
    case InstructionClass::far_jump:
    case InstructionClass::far_call:
    case InstructionClass::far_return:
    case InstructionClass::iret:
    case InstructionClass::bound:
    case InstructionClass::into:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view cause_name(CauseKind kind) {
  constexpr std::array<std::string_view, 16> kNames{
      "captured_read",      "captured_port_read",   "captured_write",   "missing_write",
      "extra_write",        "missing_interrupt",    "extra_interrupt",  "interrupt_vector",
      "interrupt_position", "external_write",       "initial_register", "uncertain_result",
      "internal_value",     "missing_transactions", "wrong_start",      "stale_code"};
  return kNames[static_cast<std::size_t>(kind)];
}

CauseFinder::CauseFinder(TrialRun& trials, const Divergence& divergence)
    : trials_(trials),
      recording_(trials.recording()),
      schedule_(trials.schedule()),
      divergence_(divergence),
      history_(trials.history(kHistory)) {
  next_interrupt_ = trials.next_interrupt();
  find_mismatches();
  trace_back();
  index_evidence();
  compare_last_steps();
  number_internal_reads();
}

std::vector<Cause> CauseFinder::find() {
  lone_change();
  captured_value();
  other_address();
  missing_write();
  extra_write();
  interrupts();
  memory_sources();
  flip_code();
  stale_code();
  port_sources();
  internal_sources();
  uncertain_result();
  register_sources();
  solve_registers();
  solve_sources();
  solve_ports();
  unseen_smi();  // leaves the machine elsewhere
  return std::move(causes_);
}

/// The byte as the replay left it. Where address bits were not captured, the one it stored last at
/// any of the addresses that the captured one may mean.
std::optional<std::uint8_t> CauseFinder::replayed_byte(PhysAddr captured) const {
  constexpr std::size_t kLookedAt = 256;
  const auto& steps = history_.steps();
  const std::size_t end = steps.size() - std::min(kLookedAt, steps.size());
  for (std::size_t i = steps.size(); i-- > end;) {
    const auto accesses = history_.accesses(steps[i]);
    for (auto a = accesses.rbegin(); a != accesses.rend(); ++a) {
      const std::uint32_t offset = captured.value - a->address.value;
      if (a->kind != HistoryAccess::Kind::write || offset >= std::min(a->size, 8u)) continue;
      return static_cast<std::uint8_t>(a->value >> (8 * offset));
    }
  }
  std::optional<std::uint8_t> found;
  const Memory& memory = trials_.machine().memory();
  memory.for_each_alias(captured, [&](PhysAddr alias) {
    if (!found) found = memory.defined_byte(alias);
  });
  return found;
}

std::uint8_t CauseFinder::memory_byte(PhysAddr a) const {
  const auto found = memory_.find(a.value);
  return found != memory_.end() ? found->second : replayed_byte(a).value_or(0);
}

void CauseFinder::find_mismatches() {
  if (!divergence_.shown || !divergence_.shown->is_memory()) return;
  const BusTransaction& t = *divergence_.shown;
  add_mismatches(t);
  if (!t.has(kWriteBack)) return;
  // A line may be given up in parts.
  constexpr std::size_t kParts = 8;
  std::uint32_t next = t.address.value + t.size;
  for (const BusTransaction& part :
       transactions_from(*trials_.open_evidence(), t.index + 1, kParts)) {
    if (!part.has(kWriteBack) || part.address.value != next) break;
    add_mismatches(part);
    next += part.size;
  }
}

void CauseFinder::add_mismatches(const BusTransaction& t) {
  for (std::uint32_t i = 0; i < t.size; ++i) {
    const PhysAddr at = t.address + i;
    const auto ours = replayed_byte(at);
    memory_[at.value] = ours.value_or(0);
    if (ours && *ours != t.data[i] && t.op == BusOp::data_write) {
      mismatches_.push_back({at, t.data[i], *ours});
    }
  }
}

void CauseFinder::trace_back() {
  ValueLineage lineage(history_);
  const auto& steps = history_.steps();
  for (const Mismatch& m : mismatches_) lineage.ask_memory(m.address, 0);
  const unsigned first = mismatches_.empty() ? 0 : 6;
  for (std::size_t i = 0; i < std::min(kLastSteps, steps.size()); ++i) {
    const auto far = first + static_cast<unsigned>(2 * i);
    lineage.ask_step(steps.size() - 1 - i, far, far);
  }
  unsigned decisions = 0;
  for (std::size_t i = steps.size(); i-- > 0 && decisions < kDecisions;) {
    if (!decides(steps[i].instruction_class)) continue;
    lineage.ask_decision(i, first + 2 + decisions / 2);
    ++decisions;
  }
  lineage_ = lineage.sources(kMaxSources);
  trace_moves(lineage);
}

/// Where the bytes in question were read, when they were only moved. What a copy goes on to write
/// is not replayed any more, but the capture has it.
void CauseFinder::trace_moves(ValueLineage& lineage) {
  if (mismatches_.empty()) return;
  for (const Mismatch& m : mismatches_) {
    const auto moves = lineage.moved_from(m.address);
    if (moved_.size() < moves.size()) moved_.resize(moves.size());
    for (std::size_t level = 0; level < moves.size(); ++level) {
      moved_[level].push_back({moves[level].from, m.shown, moves[level].step});
    }
  }
  const BusTransaction& t = *divergence_.shown;
  if (t.has(kWriteBack)) return;
  // The rest of the line that was read, as far as it is copied in one go.
  constexpr std::size_t kLookedAt = 256;
  std::uint32_t next = t.address.value + t.size;
  std::vector<std::uint8_t> rest;
  for (const BusTransaction& later :
       transactions_from(*trials_.open_evidence(), t.index + 1, kLookedAt)) {
    if (later.op != BusOp::data_write || later.address.value != next) continue;
    rest.insert(rest.end(), later.data.begin(), later.data.begin() + later.size);
    next += later.size;
  }
  const std::uint32_t line = std::max(recording_.bus.line_bytes, recording_.bus.bus_bytes);
  for (std::vector<MovedByte>& bytes : moved_) {
    if (bytes.empty()) continue;
    const MovedByte last = bytes.back();
    std::uint32_t at =
        last.from.value + (t.address.value + t.size - 1 - mismatches_.back().address.value) + 1;
    for (std::size_t i = 0; i < rest.size() && at / line == last.from.value / line; ++i, ++at) {
      bytes.push_back({PhysAddr{at}, rest[i], last.step});
    }
  }
}

void CauseFinder::index_evidence() {
  std::vector<PhysAddr> bytes;
  for (const auto& [address, value] : memory_) bytes.push_back(PhysAddr{address});
  if (divergence_.shown) bytes.push_back(divergence_.shown->address);
  for (const LineageSource& s : lineage_) {
    if (s.kind == LineageSource::Kind::memory || s.kind == LineageSource::Kind::external)
      bytes.push_back(s.address);
  }
  const auto& steps = history_.steps();
  constexpr std::size_t kCode = 128;
  for (std::size_t i = steps.size() - std::min(kCode, steps.size()); i < steps.size(); ++i) {
    for (std::uint32_t b = 0; b < steps[i].length; ++b) {
      bytes.push_back(trials_.machine().memory().captured(steps[i].physical + b));
    }
    for (const HistoryAccess& a : history_.accesses(steps[i])) {
      if (a.kind != HistoryAccess::Kind::write) continue;
      for (std::uint32_t b = 0; b < a.size; ++b) bytes.push_back(a.address + b);
    }
  }
  for (const auto& moved : moved_) {
    for (const MovedByte& m : moved) bytes.push_back(m.from);
  }
  for (const ExternalWrite& w : schedule_.external_writes) {
    if (w.transaction == divergence_.transaction) bytes.push_back(w.address);
  }
  index_ = std::make_unique<EvidenceIndex>(*trials_.open_evidence(), bytes);
}

std::uint64_t CauseFinder::transaction_after(Position position) const {
  const auto evidence = trials_.open_evidence();
  std::uint64_t last = 0;
  for (BusTransaction t; evidence->next(t);) {
    if (t.has(kPositionKnown) && t.is_memory() && t.position.instruction > position.instruction) {
      return t.index;
    }
    last = t.index;
  }
  return divergence_.transaction != ~std::uint64_t{0} ? divergence_.transaction : last;
}

}  // namespace citcat
