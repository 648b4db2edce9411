// Interrupts, ports and what the processor held when the recording began.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/diagnose/cause_finder.h"

namespace citcat {
namespace {

constexpr std::uint64_t kEnd = ~std::uint64_t{0};
/// An interrupt is suspect when it was delivered so shortly before the divergence, or was to be so
/// shortly after it, in instructions.
constexpr std::uint64_t kSuspectBefore = 2048, kSuspectAfter = 256;
constexpr std::int64_t kMaxShifted = 32;
/// How early in a run its initial registers are all suspect.
constexpr std::uint64_t kYoung = 30'000;

Hint interrupt_hint(Hint::Kind kind, const Interrupt& interrupt) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = interrupt.transaction;
  hint.position = interrupt.position;
  hint.value = interrupt.vector;
  return hint;
}

}  // namespace

void CauseFinder::interrupts() {
  const std::uint64_t at = divergence_.position.instruction;
  for (const std::size_t n : {next_interrupt_ - 1, next_interrupt_, next_interrupt_ + 1}) {
    if (n >= schedule_.interrupts.size()) continue;
    const Interrupt& i = schedule_.interrupts[n];
    if (i.position.instruction + kSuspectBefore < at || i.position.instruction > at + kSuspectAfter)
      continue;
    move_interrupt(n);
    change_vector(n);
    add({CauseKind::extra_interrupt,
         fmt::format("transaction {}, an interrupt acknowledge, was none", i.transaction),
         {interrupt_hint(Hint::Kind::no_interrupt, i)},
         {i.position, i.transaction},
         std::nullopt,
         5});
  }
  add_interrupt();
}

void CauseFinder::move_interrupt(std::size_t number) {
  const Interrupt& i = schedule_.interrupts[number];
  add_shown_place(i);
  for (std::int64_t by = -kMaxShifted; by <= kMaxShifted; ++by) {
    const auto was = static_cast<std::int64_t>(i.position.instruction);
    if (by == 0 || was + by < 0) continue;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.position = {static_cast<std::uint64_t>(was + by), 0};
    // Behind the end it would be none.
    if (recording_.instructions && hint.position.instruction >= *recording_.instructions) break;
    const Position earlier = std::min(hint.position, Position{i.position.instruction, 0});
    add({CauseKind::interrupt_position,
         fmt::format("the interrupt of transaction {} came {} instructions {}, before instruction "
                     "{}",
                     i.transaction, by < 0 ? -by : by, by < 0 ? "earlier" : "later",
                     hint.position.instruction),
         {hint},
         {earlier, kEnd},
         std::nullopt,
         1 + 0.001 * static_cast<double>(by < 0 ? -by : by)});
  }
}

/// Where the capture's own count has the acknowledge, or the frame that follows it.
void CauseFinder::add_shown_place(const Interrupt& i) {
  constexpr std::size_t kLookedAt = 16;
  std::set<Position> places;
  for (const BusTransaction& t :
       transactions_from(*trials_.open_evidence(), i.transaction, kLookedAt)) {
    const bool counted = t.has(kPositionKnown) && t.position != i.position;
    const bool acknowledge = t.index == i.transaction;
    if (!counted || (!acknowledge && t.op != BusOp::data_write)) continue;
    if (!places.insert(t.position).second) continue;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.position = t.position;
    add({CauseKind::interrupt_position,
         fmt::format("the interrupt of transaction {} came before instruction {}, iteration {}, "
                     "where the capture has it",
                     i.transaction, t.position.instruction, t.position.iteration),
         {hint},
         {std::min(t.position, i.position), kEnd},
         std::nullopt,
         acknowledge ? 0.5 : 0.8});
  }
}

void CauseFinder::change_vector(std::size_t number) {
  const Interrupt& i = schedule_.interrupts[number];
  if (i.kind != Interrupt::Kind::external) return;
  for (unsigned vector = 0; vector < 256; ++vector) {
    const unsigned changed = vector ^ i.vector;
    if (changed == 0) continue;
    const bool one_bit = (changed & (changed - 1)) == 0;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.value = vector;
    add({CauseKind::interrupt_vector,
         fmt::format("the interrupt of transaction {} had vector {:02x} and was captured as {:02x}",
                     i.transaction, vector, i.vector),
         {hint},
         {i.position, i.transaction},
         std::nullopt,
         one_bit ? 1 : 3.0});
  }
}

/// One that the capture does not show, where the replay stopped agreeing.
void CauseFinder::add_interrupt() {
  std::map<unsigned, std::size_t> used;
  for (const Interrupt& i : schedule_.interrupts) {
    if (i.kind == Interrupt::Kind::external) ++used[i.vector];
  }
  std::set<Position> places{divergence_.position, {divergence_.position.instruction + 1, 0}};
  if (divergence_.shown && divergence_.shown->has(kPositionKnown)) {
    places.insert(divergence_.shown->position);
  }
  std::uint64_t transaction = divergence_.transaction;
  if (transaction == kEnd) transaction = transaction_after(divergence_.position);
  for (const Position place : places) {
    for (unsigned vector = 0; vector < 256; ++vector) {
      // Below 20h are exceptions, unless a machine in real mode uses them.
      if (used.count(vector) == 0 && vector < 8) continue;
      Hint hint;
      hint.kind = Hint::Kind::added_interrupt;
      hint.name = "intr";
      hint.transaction = transaction;
      hint.position = place;
      hint.value = vector;
      add({CauseKind::missing_interrupt,
           fmt::format("the capture lacks an interrupt with vector {:02x} before instruction {}",
                       vector, place.instruction),
           {hint},
           {place, transaction},
           std::nullopt,
           used.count(vector) != 0 ? 1.1 : 2.0});
    }
  }
}

void CauseFinder::port_sources() {
  std::set<std::uint64_t> done;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::port || s.number >= schedule_.io_reads.size() ||
        !done.insert(s.number).second) {
      continue;
    }
    const IoRead& read = schedule_.io_reads[s.number];
    const Position at = history_.steps()[s.path.front()].position;
    for (unsigned bit = 0; bit < read.size * 8u; ++bit) {
      add_port_cause(read, read.value ^ 1u << bit, at, 1 + 0.02 * s.distance);
    }
  }
}

void CauseFinder::add_port_cause(const IoRead& read, std::uint32_t value, Position at,
                                 double price) {
  Hint hint;
  hint.kind = Hint::Kind::port_read;
  hint.transaction = read.transaction;
  hint.value = value;
  add({CauseKind::captured_port_read,
       fmt::format("transaction {} read {:0{}x} from port {:04x} and was captured as {:0{}x}",
                   read.transaction, hint.value, 2 * read.size, read.port, read.value,
                   2 * read.size),
       {hint},
       {at, read.transaction},
       std::nullopt,
       price});
}

void CauseFinder::flip_register(const std::string& name, double price) {
  const auto value = get_register(recording_.initial, name);
  if (!value) return;
  const auto& unknown = recording_.initial.unknown;
  if (std::find(unknown.begin(), unknown.end(), name) != unknown.end()) price += 0.5;
  // In real mode the hidden parts of a segment follow from its selector.
  const bool real = (recording_.initial.cr0 & 1) == 0;
  if (real && name.find('.') == 2) price += 0.5;
  for (unsigned bit = 0; bit < 32; ++bit) {
    CpuState changed = recording_.initial;
    const std::uint64_t other = *value ^ std::uint64_t{1} << bit;
    // Registers that have no such bit.
    if (!set_register(changed, name, other) || get_register(changed, name) == value) continue;
    Hint hint;
    hint.kind = Hint::Kind::register_value;
    hint.name = name;
    hint.value = other;
    add({CauseKind::initial_register,
         fmt::format("{} was {:x} at the start and the state dump has {:x}", name, other, *value),
         {hint},
         {{0, 0}, 0},
         std::nullopt,
         price});
  }
}

void CauseFinder::register_sources() {
  if (!trials_.history_from_start()) return;
  constexpr double kDumped = 1.3;
  std::set<std::string> done;
  for (const LineageSource& s : lineage_) {
    if (s.kind != LineageSource::Kind::reg) continue;
    const std::string name = flow_register_name(static_cast<unsigned>(s.number));
    if (!get_register(recording_.initial, name) || !done.insert(name).second) continue;
    flip_register(name, kDumped + 0.02 * s.distance);
  }
  if (divergence_.position.instruction > kYoung) return;
  // SMBASE is read by no instruction, and the import holds it to what the first SMI shows.
  for (const std::string& name : register_names(recording_.initial.model)) {
    if (name == "tsc" || name == "fx" || name == "a20_mask" || name == "smbase" ||
        !done.insert(name).second)
      continue;
    flip_register(name, kDumped + 0.4);
  }
}

/// The instruction's result is the processor's: undefined flags, x87 and SSE arithmetic.
void CauseFinder::uncertain_result() {
  if (mismatches_.empty()) return;
  const BusTransaction& t = *divergence_.shown;
  const bool uncertain = std::any_of(lineage_.begin(), lineage_.end(),
                                     [](const LineageSource& s) { return s.uncertain; });
  Hint hint;
  hint.kind = Hint::Kind::result;
  hint.transaction = t.index;
  hint.position = divergence_.position;
  hint.address = t.address;
  hint.data.assign(t.data.begin(), t.data.begin() + t.size);
  hint.write_back = t.has(kWriteBack);
  add({CauseKind::uncertain_result,
       fmt::format("the processor computes another value than the replay, and wrote it in "
                   "transaction {}",
                   t.index),
       {hint},
       {divergence_.position, t.index},
       std::nullopt,
       uncertain ? 1.8 : 7.0});
}

}  // namespace citcat
