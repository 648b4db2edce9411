#include "events/processors/bus_turns.h"

#include <algorithm>

namespace citcat {

BusTurns::BusTurns(SharedBus bus, std::size_t processors) : ends_(processors), begins_(processors) {
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
      its.back().clock = t.clock;
      continue;
    }
    if (its.empty()) begins_[event.processor] = t.clock;
    its.push_back({count_++, end, t.clock});
    last = event.processor;
  }
}

std::vector<BusTurns::End>::const_iterator BusTurns::end_behind(std::size_t processor,
                                                                Position at) const {
  const std::vector<End>& its = ends_[processor];
  return std::upper_bound(
      its.begin(), its.end(), at.instruction,
      [](std::uint64_t instruction, const End& e) { return instruction < e.instruction; });
}

std::uint64_t BusTurns::turn_of(std::size_t processor, Position at) const {
  const auto end = end_behind(processor, at);
  return end == ends_[processor].end() ? count_ + processor : end->turn;
}

std::uint64_t BusTurns::clock_of(std::size_t processor, Position at) const {
  const std::vector<End>& its = ends_[processor];
  const auto end = end_behind(processor, at);
  const End begin = end == its.begin() ? End{0, 0, begins_[processor]} : *std::prev(end);
  const std::uint64_t passed = at.instruction - begin.instruction;
  if (end == its.end()) return begin.clock + passed;
  const double share =
      static_cast<double>(passed) / static_cast<double>(end->instruction - begin.instruction);
  return begin.clock +
         static_cast<std::uint64_t>(share * static_cast<double>(end->clock - begin.clock));
}

std::uint64_t BusTurns::before(std::size_t processor, std::uint64_t turn) const {
  const std::vector<End>& its = ends_[processor];
  const auto end =
      std::lower_bound(its.begin(), its.end(), turn,
                       [](const End& e, std::uint64_t number) { return e.turn < number; });
  return end == its.begin() ? 0 : std::prev(end)->instruction;
}

}  // namespace citcat
