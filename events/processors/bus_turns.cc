#include "events/processors/bus_turns.h"

#include <algorithm>

namespace citcat {

BusTurns::BusTurns(SharedBus bus, std::size_t processors) : ends_(processors) {
  std::size_t last = processors;
  for (SharedEvent event; bus.next(event);) {
    const BusTransaction& t = event.t;
    if (event.note || !t.has(kPositionKnown)) continue;
    // An interrupt comes before the instruction that it counts to; all else is of that instruction.
    const bool is_before = t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi;
    const std::uint64_t end = t.position.instruction + (is_before ? 0 : 1);
    std::vector<End>& its = ends_[event.processor];
    const std::uint64_t begin = its.empty() ? 0 : its.back().instruction;
    if (end <= begin) continue;  // of an instruction that has had its turn
    if (event.processor == last) {
      its.back().instruction = end;
      continue;
    }
    its.push_back({count_++, end});
    last = event.processor;
  }
}

std::uint64_t BusTurns::turn_of(std::size_t processor, Position at) const {
  const std::vector<End>& its = ends_[processor];
  const auto end = std::upper_bound(
      its.begin(), its.end(), at.instruction,
      [](std::uint64_t instruction, const End& e) { return instruction < e.instruction; });
  return end == its.end() ? count_ + processor : end->turn;
}

std::uint64_t BusTurns::before(std::size_t processor, std::uint64_t turn) const {
  const std::vector<End>& its = ends_[processor];
  const auto end =
      std::lower_bound(its.begin(), its.end(), turn,
                       [](const End& e, std::uint64_t number) { return e.turn < number; });
  return end == its.begin() ? 0 : std::prev(end)->instruction;
}

}  // namespace citcat
