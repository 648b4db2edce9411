// Interrupts: captured at a wrong place or with a wrong vector, not captured, or not real.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/diagnose/cause_generators.h"
#include "replay/diagnose/cause_prices.h"

namespace citcat {
namespace {

/// An interrupt is suspect when it was delivered so shortly before the divergence, or was to be so
/// shortly after it, in instructions.
constexpr std::uint64_t kSuspectBefore = 2048, kSuspectAfter = 256;
constexpr std::int64_t kMaxShifted = 32;

Hint interrupt_hint(Hint::Kind kind, const Interrupt& interrupt) {
  Hint hint;
  hint.kind = kind;
  hint.transaction = interrupt.transaction;
  hint.position = interrupt.position;
  hint.value = interrupt.vector;
  return hint;
}

class InterruptCauses : private CauseGenerator {
 public:
  using CauseGenerator::CauseGenerator;
  void interrupts();

 private:
  void move_interrupt(std::size_t number);
  void add_shown_place(const Interrupt& i);
  void change_vector(std::size_t number);
  void add_interrupt();
};

void InterruptCauses::interrupts() {
  const std::uint64_t at = c_.divergence().position.instruction;
  for (const std::size_t n :
       {c_.next_interrupt() - 1, c_.next_interrupt(), c_.next_interrupt() + 1}) {
    if (n >= c_.schedule().interrupts.size()) continue;
    const Interrupt& i = c_.schedule().interrupts[n];
    if (i.position.instruction + kSuspectBefore < at || i.position.instruction > at + kSuspectAfter)
      continue;
    move_interrupt(n);
    change_vector(n);
    out_.add(
        {CauseKind::extra_interrupt,
         fmt::format("transaction {} was captured as an interrupt acknowledge, but was not one",
                     i.transaction),
         {interrupt_hint(Hint::Kind::no_interrupt, i)},
         {i.position, i.transaction},
         std::nullopt,
         5});
  }
  add_interrupt();
}

void InterruptCauses::move_interrupt(std::size_t number) {
  const Interrupt& i = c_.schedule().interrupts[number];
  add_shown_place(i);
  for (std::int64_t by = -kMaxShifted; by <= kMaxShifted; ++by) {
    const auto was = static_cast<std::int64_t>(i.position.instruction);
    if (by == 0 || was + by < 0) continue;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.position = {static_cast<std::uint64_t>(was + by), 0};
    // After the end it would be none.
    if (c_.recording().instructions && hint.position.instruction >= *c_.recording().instructions)
      break;
    const Position earlier = std::min(hint.position, Position{i.position.instruction, 0});
    out_.add(
        {CauseKind::interrupt_position,
         fmt::format("the interrupt of transaction {} came {} instructions {}, before instruction "
                     "{}",
                     i.transaction, by < 0 ? -by : by, by < 0 ? "earlier" : "later",
                     hint.position.instruction),
         {hint},
         {earlier, kNowhere},
         std::nullopt,
         1 + 0.001 * static_cast<double>(by < 0 ? -by : by)});
  }
}

/// Where the capture's own count has the acknowledge, or the frame that follows it.
void InterruptCauses::add_shown_place(const Interrupt& i) {
  constexpr std::size_t kLookedAt = 16;
  std::set<Position> places;
  for (const BusTransaction& t :
       transactions_from(*c_.trials().open_evidence(), i.transaction, kLookedAt)) {
    const bool counted = t.has(kPositionKnown) && t.position != i.position;
    const bool acknowledge = t.index == i.transaction;
    if (!counted || (!acknowledge && t.op != BusOp::data_write)) continue;
    if (!places.insert(t.position).second) continue;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.position = t.position;
    out_.add(
        {CauseKind::interrupt_position,
         fmt::format("the interrupt of transaction {} came before instruction {}, iteration {}, "
                     "where the capture has it",
                     i.transaction, t.position.instruction, t.position.iteration),
         {hint},
         {std::min(t.position, i.position), kNowhere},
         std::nullopt,
         acknowledge ? 0.5 : 0.8});
  }
}

void InterruptCauses::change_vector(std::size_t number) {
  const Interrupt& i = c_.schedule().interrupts[number];
  if (i.kind != Interrupt::Kind::external) return;
  for (unsigned vector = 0; vector < 256; ++vector) {
    const unsigned changed = vector ^ i.vector;
    if (changed == 0) continue;
    const bool one_bit = (changed & (changed - 1)) == 0;
    Hint hint = interrupt_hint(Hint::Kind::interrupt, i);
    hint.value = vector;
    out_.add(
        {CauseKind::interrupt_vector,
         fmt::format("the interrupt of transaction {} had vector {:02x} and was captured as {:02x}",
                     i.transaction, vector, i.vector),
         {hint},
         {i.position, i.transaction},
         std::nullopt,
         one_bit ? 1 : 3.0});
  }
}

/// One that the capture does not show, where the replay stopped agreeing.
void InterruptCauses::add_interrupt() {
  std::map<unsigned, std::size_t> used;
  for (const Interrupt& i : c_.schedule().interrupts) {
    if (i.kind == Interrupt::Kind::external) ++used[i.vector];
  }
  std::set<Position> places{c_.divergence().position,
                            {c_.divergence().position.instruction + 1, 0}};
  if (c_.divergence().shown && c_.divergence().shown->has(kPositionKnown)) {
    places.insert(c_.divergence().shown->position);
  }
  std::uint64_t transaction = c_.divergence().transaction;
  if (transaction == kNowhere) transaction = c_.transaction_after(c_.divergence().position);
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
      out_.add(
          {CauseKind::missing_interrupt,
           fmt::format("the capture lacks an interrupt with vector {:02x} before instruction {}",
                       vector, place.instruction),
           {hint},
           {place, transaction},
           std::nullopt,
           used.count(vector) != 0 ? 1.1 : 2.0});
    }
  }
}

}  // namespace

void interrupts_nearby(const CauseContext& context, CauseList& out) {
  InterruptCauses(context, out).interrupts();
}

}  // namespace citcat
