#include "monitor/log/turns.h"

namespace citcat::monitor {

Candidate candidate_of(const LoggedState& state, bool waits) {
  constexpr std::uint32_t kProtectedMode = 1;
  return {(state.cr0 & kProtectedMode) == 0, waits, state.gdt_base, state.tr.base};
}

std::optional<unsigned> whose(const LoggedEvent& event, std::span<const Candidate> processors) {
  const Candidate its = candidate_of(event.before, false);
  // Outside 64-bit mode the log has half of an address.
  const auto is_equal = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<std::uint32_t>(a) == static_cast<std::uint32_t>(b);
  };
  std::optional<unsigned> found;
  for (unsigned n = 0; n < processors.size(); ++n) {
    const Candidate& one = processors[n];
    if (one.waits || one.real_mode != event.real_mode) continue;
    if (!event.real_mode &&
        (!is_equal(one.gdt_base, its.gdt_base) || !is_equal(one.task_base, its.task_base)))
      continue;
    if (found) return std::nullopt;
    found = n;
  }
  return found;
}

}  // namespace citcat::monitor
