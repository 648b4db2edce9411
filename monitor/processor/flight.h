#pragma once
// The instruction in flight: what it has done so far, and what is needed when it has ended.

#include <cstdint>
#include <optional>

#include "monitor/processor/attempt.h"
#include "monitor/processor/insn.h"
#include "monitor/state/registers.h"

namespace citcat::monitor {

struct Flight {
  const Insn* insn = nullptr;
  std::uint64_t linear = 0;      ///< where it runs
  std::uint64_t completed = 0;   ///< instructions before it
  std::uint32_t iterations = 0;  ///< of its REP
  unsigned accesses = 0;         ///< of the iteration in progress
  Attempt attempt;
  struct PortAccess {
    std::uint32_t number = 0, value = 0;
  } port;
  std::uint64_t stack_pointer = 0;       ///< before a software interrupt
  std::optional<std::uint64_t> operand;  ///< linear address of one that is shown at its end
  const LoggedState* left = nullptr;     ///< what it left, where the emulator has gone on since

  /// Counts an access of a string instruction into its iteration. An access of the kind that begins
  /// an iteration, where the other kind is due, means that the iteration was begun again.
  void iterate(bool store) {
    const unsigned per_iteration = accesses_per_iteration(insn->what.kind);
    if (per_iteration == 0) return;
    if (insn->what.kind == InsnKind::movs) accesses = store ? 1 : 0;
    if (++accesses != per_iteration) return;
    accesses = 0;
    attempt.begin(false);
    if (insn->what.repeated) ++iterations;
  }
  /// Whether RCX, ECX or CX leaves the REP nothing to do.
  bool is_used_up(std::uint64_t count) const {
    return (count & address_mask(insn->what.address_bytes)) == 0;
  }
  /// A REP whose last iteration is done and which the emulator would look at once more, to find its
  /// count used up. For a processor it has ended.
  bool repeat_used_up(const LoggedState& state) const {
    return insn->what.repeated && iterations != 0 && is_used_up(state.gpr[1]);
  }
  bool delivers_itself() const {
    return insn != nullptr && monitor::delivers_itself(insn->what.kind);
  }
  /// A general register after the instruction that ends.
  std::uint64_t gpr_after(unsigned n, Registers& registers) const {
    return left != nullptr ? left->gpr[n] : registers.gpr(n);
  }
};

}  // namespace citcat::monitor
