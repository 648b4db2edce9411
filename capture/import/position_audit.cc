#include "capture/import/position_audit.h"

#include <algorithm>

namespace citcat {

void PositionAudit::judge(std::span<const BusTransaction> first, bool at_end) {
  if (counting_ != Counting::all) return;
  // No instruction causes this many accesses outside a REP: FXSAVE of 512 bytes over a 32-bit bus,
  // with page walks and an interrupt before it, stays below two thirds of it.
  constexpr std::uint64_t kMaxAccesses = 256;
  std::uint64_t boundary = 0;
  bool moves = false, runs_back = false, interrupt_counted = false;
  const BusTransaction *last = nullptr, *interrupt = nullptr;  // the latter only since the former
  for (const BusTransaction& t : first) {
    if (!t.has(kPositionKnown)) continue;
    if (t.op == BusOp::interrupt_acknowledge) {
      interrupt_counted |= t.position.instruction != 0;
      interrupt = &t;
      continue;
    }
    if (t.position.iteration == 0) ++boundary;
    if (last != nullptr) {
      // A count copied at interrupts does not move either.
      const bool copied =
          interrupt != nullptr && t.position.instruction == interrupt->position.instruction;
      moves |= t.position.instruction != last->position.instruction && !copied;
      runs_back |= t.position < last->position;
    }
    last = &t;
    interrupt = nullptr;
  }
  if (last == nullptr || moves) return;
  if (boundary < kMaxAccesses && !runs_back && !(interrupt_counted && at_end)) return;
  counting_ = Counting::interrupts;
  warnings_.push_back(
      "instruction counts do not change with each instruction: only those at interrupts are used");
}

void PositionAudit::apply_slow(BusTransaction& t) {
  if (counting_ == Counting::all) {
    lose(Counting::interrupts, t, "instruction counts run backwards");
  }
  const bool at_interrupt = t.op == BusOp::interrupt_acknowledge;
  if (counting_ == Counting::interrupts && at_interrupt && t.position.instruction != 0) {
    if (t.position.instruction >= latest_interrupt_) {
      latest_interrupt_ = t.position.instruction;
      return;
    }
    lose(Counting::none, t, "instruction counts of interrupts run backwards");
  }
  t.flags &= static_cast<std::uint16_t>(~kPositionKnown);
  t.position = {};
}

void PositionAudit::lose(Counting rest, const BusTransaction& t, const std::string& why) {
  counting_ = rest;
  latest_interrupt_ = std::max(latest_interrupt_, latest_);
  warnings_.push_back(why + " at transaction " + std::to_string(t.index) + ": from " +
                      std::to_string(latest_) + " to " + std::to_string(t.position.instruction) +
                      "; they are not believed from there on");
}

}  // namespace citcat
