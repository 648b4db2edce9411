#include "replay/diagnose/cause_context.h"

#include <algorithm>

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

/// Accesses of the replay's last steps that are compared with what the bus shows; transactions
/// after the divergence with which.
constexpr std::size_t kStepsCompared = 3, kUpcoming = 64;

std::optional<InternalRead::Op> op_of(InstructionClass c) {
  switch (c) {
    case InstructionClass::rdtsc:
      return InternalRead::Op::rdtsc;
    case InstructionClass::rdmsr:
      return InternalRead::Op::rdmsr;
    case InstructionClass::wrmsr:
      return InternalRead::Op::wrmsr;
    case InstructionClass::cpuid:
      return InternalRead::Op::cpuid;
    case InstructionClass::rdpmc:
      return InternalRead::Op::rdpmc;
    default:
      return std::nullopt;
  }
}

}  // namespace

CauseContext::CauseContext(TrialRun& trials, const Divergence& divergence)
    : trials_(trials),
      divergence_(divergence),
      history_(trials.history(kHistory)),
      next_interrupt_(trials.next_interrupt()) {
  find_mismatches();
  trace_back();
  index_evidence();
  compare_last_steps();
  number_internal_reads();
}

/// The byte as the replay left it. Where address bits were not captured, the one it stored last at
/// any of the addresses that the captured one may mean.
std::optional<std::uint8_t> CauseContext::replayed_byte(PhysAddr captured) const {
  constexpr std::size_t kLookedAt = 256;
  const auto& steps = history_.steps();
  const std::size_t end = steps.size() - std::min(kLookedAt, steps.size());
  for (std::size_t i = steps.size(); i-- > end;) {
    const auto accesses = history_.accesses(steps[i]);
    for (auto a = accesses.rbegin(); a != accesses.rend(); ++a) {
      const std::uint32_t offset = captured.minus32(a->address);
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

std::uint8_t CauseContext::memory_byte(PhysAddr a) const {
  const auto found = memory_.find(a.value);
  return found != memory_.end() ? found->second : replayed_byte(a).value_or(0);
}

void CauseContext::find_mismatches() {
  if (!divergence_.shown || !divergence_.shown->is_memory()) return;
  const BusTransaction& t = *divergence_.shown;
  add_mismatches(t);
  if (!t.has(kWriteBack)) return;
  // A line may be given up in parts.
  constexpr std::size_t kParts = 8;
  std::uint64_t next = t.address.plus32(t.size).value;
  for (const BusTransaction& part :
       transactions_from(*trials_.open_evidence(), t.index + 1, kParts)) {
    if (!part.has(kWriteBack) || part.address.value != next) break;
    add_mismatches(part);
    next += part.size;
  }
}

void CauseContext::add_mismatches(const BusTransaction& t) {
  for (std::uint32_t i = 0; i < t.size; ++i) {
    const PhysAddr at = t.address.plus32(i);
    const auto ours = replayed_byte(at);
    memory_[at.value] = ours.value_or(0);
    if (ours && *ours != t.data[i] && t.op == BusOp::data_write) {
      mismatches_.push_back({at, t.data[i], *ours});
    }
  }
}

void CauseContext::trace_back() {
  ValueLineage lineage(history_);
  const auto& steps = history_.steps();
  for (const ByteMismatch& m : mismatches_) lineage.ask_memory(m.address, 0);
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
void CauseContext::trace_moves(ValueLineage& lineage) {
  if (mismatches_.empty()) return;
  for (const ByteMismatch& m : mismatches_) {
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
  std::uint64_t next = t.address.plus32(t.size).value;
  std::vector<std::uint8_t> rest;
  for (const BusTransaction& later :
       transactions_from(*trials_.open_evidence(), t.index + 1, kLookedAt)) {
    if (later.op != BusOp::data_write || later.address.value != next) continue;
    rest.insert(rest.end(), later.data.begin(), later.data.begin() + later.size);
    next += later.size;
  }
  const std::uint32_t line = std::max(recording().bus.line_bytes, recording().bus.bus_bytes);
  for (std::vector<MovedByte>& bytes : moved_) {
    if (bytes.empty()) continue;
    const MovedByte last = bytes.back();
    std::uint64_t at =
        last.from.value + (t.address.value + t.size - 1 - mismatches_.back().address.value) + 1;
    for (std::size_t i = 0; i < rest.size() && at / line == last.from.value / line; ++i, ++at) {
      bytes.push_back({PhysAddr{at}, rest[i], last.step});
    }
  }
}

void CauseContext::index_evidence() {
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
      bytes.push_back(trials_.machine().memory().captured(steps[i].physical.plus32(b)));
    }
    for (const HistoryAccess& a : history_.accesses(steps[i])) {
      if (a.kind != HistoryAccess::Kind::write) continue;
      for (std::uint32_t b = 0; b < a.size; ++b) bytes.push_back(a.address.plus32(b));
    }
  }
  for (const auto& moved : moved_) {
    for (const MovedByte& m : moved) bytes.push_back(m.from);
  }
  for (const ExternalWrite& w : schedule().external_writes) {
    if (w.transaction == divergence_.transaction) bytes.push_back(w.address);
  }
  index_ = std::make_unique<EvidenceIndex>(*trials_.open_evidence(), bytes);
}

std::uint64_t CauseContext::transaction_after(Position position) const {
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

/// The first external write to `byte` after `transaction`, and what it left there.
std::uint64_t CauseContext::next_external(PhysAddr byte, std::uint64_t transaction,
                                          std::optional<std::uint8_t>* value) const {
  for (const ExternalWrite& w : schedule().external_writes) {
    const std::uint32_t offset = byte.minus32(w.address);
    if (w.transaction <= transaction || offset >= w.data.size()) continue;
    if (value != nullptr) *value = w.data[offset];
    return w.transaction;
  }
  return ~std::uint64_t{0};
}

/// What a store of the replay left at its address, as far as the bus shows it from the divergence
/// on: it may be split.
std::uint64_t CauseContext::shown_store(const HistoryAccess& store) const {
  std::uint64_t shown = store.value;
  bool seen = false;
  for (const BusTransaction& t : upcoming_) {
    if (t.op != BusOp::data_write) continue;
    const std::uint32_t offset = t.address.minus32(store.address);
    if (offset >= std::min(store.size, 8u)) {
      if (seen) break;
      continue;
    }
    seen = true;
    for (std::uint32_t b = 0; b < t.size && offset + b < 8; ++b) {
      const unsigned at = 8 * (offset + b);
      shown = (shown & ~(std::uint64_t{0xff} << at)) | std::uint64_t{t.data[b]} << at;
    }
  }
  return shown;
}

/// What the replay's last stores and port writes were, and what the bus shows of them.
void CauseContext::compare_last_steps() {
  const std::uint64_t first = divergence_.transaction != ~std::uint64_t{0}
                                  ? divergence_.transaction
                                  : transaction_after(divergence_.position);
  upcoming_ = transactions_from(*trials_.open_evidence(), first, kUpcoming);
  const auto& steps = history_.steps();
  for (std::size_t i = steps.size() - std::min(kStepsCompared, steps.size()); i < steps.size();
       ++i) {
    for (const HistoryAccess& a : history_.accesses(steps[i])) compare(a);
  }
}

/// An access of the replay with the next of its kind that the bus shows.
void CauseContext::compare(const HistoryAccess& a) {
  BusOp op = BusOp::data_write;
  if (a.kind == HistoryAccess::Kind::read) op = BusOp::data_read;
  if (a.kind == HistoryAccess::Kind::port_write) op = BusOp::io_write;
  if (op == BusOp::data_write && a.kind != HistoryAccess::Kind::write) return;
  const auto next = std::find_if(upcoming_.begin(), upcoming_.end(), [&](const BusTransaction& t) {
    return t.op == op && !t.has(kWriteBack);
  });
  if (next == upcoming_.end()) return;
  const std::uint64_t shown = op == BusOp::data_write ? shown_store(a)
                              : op == BusOp::io_write ? next->value()
                                                      : a.value;
  if (shown != a.value) differences_.push_back({a.value, shown});
  if (!next->address.is_within32(a.address, std::max(a.size, 1u))) {
    differences_.push_back({a.address.value, next->address.value});
  }
}

/// The replay takes them in order, each for the next instruction of its kind.
void CauseContext::number_internal_reads() {
  const auto& reads = schedule().internal_reads;
  const auto& steps = history_.steps();
  std::size_t next = static_cast<std::size_t>(trials_.internal_reads_before_history());
  for (std::size_t i = 0; i < steps.size() && next < reads.size(); ++i) {
    const auto op = op_of(steps[i].instruction_class);
    const InternalRead& read = reads[next];
    const bool here =
        !read.position_known || read.position.instruction == steps[i].position.instruction;
    if (steps[i].kind != HistoryStep::Kind::instruction || op != read.op || !here) continue;
    internal_numbers_[i] = next++;
  }
}

std::optional<std::size_t> CauseContext::internal_number(std::size_t step) const {
  const auto found = internal_numbers_.find(step);
  if (found == internal_numbers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace citcat
