#include "events/processors/bus_turns.h"

#include <algorithm>

namespace citcat {
namespace {

/// Instructions of which the last has at least begun.
std::uint64_t begun(Position position) {
  return position.instruction + (position.iteration != 0 ? 1 : 0);
}

/// How far `at` is on the way between two positions, from 0 to 1.
double share_of(Position begin, Position at, Position end) {
  std::uint64_t passed = begun(at) - begun(begin), all = begun(end) - begun(begin);
  if (all == 0) {  // within one REP
    if (begin.instruction != end.instruction) return 1;
    passed = at.iteration - begin.iteration;
    all = end.iteration - begin.iteration;
  }
  return static_cast<double>(passed) / static_cast<double>(all);
}

}  // namespace

BusTurns::BusTurns(SharedBus bus, std::size_t processors) : ends_(processors), begins_(processors) {
  std::size_t last = processors;
  for (SharedEvent event; bus.next(event);) {
    const BusTransaction& t = event.t;
    if (event.note || !t.has(kPositionKnown)) continue;
    // An interrupt comes before what it counts to; all else is of that instruction, or iteration.
    const bool is_before = t.op == BusOp::interrupt_acknowledge || t.op == BusOp::nmi;
    const Position end{t.position.instruction, t.position.iteration + (is_before ? 0 : 1)};
    std::vector<End>& its = ends_[event.processor];
    const Position begin = its.empty() ? Position{} : its.back().position;
    if (end <= begin) continue;  // of an instruction that has had its turn
    if (event.processor == last) {
      its.back().position = end;
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
  return std::upper_bound(its.begin(), its.end(), at,
                          [](Position position, const End& e) { return position < e.position; });
}

std::uint64_t BusTurns::turn_of(std::size_t processor, Position at) const {
  const auto end = end_behind(processor, at);
  return end == ends_[processor].end() ? count_ + processor : end->turn;
}

std::uint64_t BusTurns::turn_before(std::size_t processor, Position at) const {
  if (at.iteration != 0) return turn_of(processor, {at.instruction, at.iteration - 1});
  if (at.instruction == 0) return turn_of(processor, at);
  const std::uint64_t last = at.instruction - 1;
  // How many iterations it had is not known: the last turn with one of them is meant.
  const auto behind = end_behind(processor, {last, ~std::uint32_t{0}});
  if (behind != ends_[processor].begin()) {
    const End& before = *std::prev(behind);
    if (before.position.instruction == last && before.position.iteration != 0) return before.turn;
  }
  return behind == ends_[processor].end() ? count_ + processor : behind->turn;
}

std::uint64_t BusTurns::clock_of(std::size_t processor, Position at) const {
  const std::vector<End>& its = ends_[processor];
  const auto end = end_behind(processor, at);
  const End begin = end == its.begin() ? End{0, {}, begins_[processor]} : *std::prev(end);
  if (end == its.end()) return begin.clock + begun(at) - begun(begin.position);
  return begin.clock + static_cast<std::uint64_t>(share_of(begin.position, at, end->position) *
                                                  static_cast<double>(end->clock - begin.clock));
}

std::uint64_t BusTurns::before(std::size_t processor, std::uint64_t turn) const {
  const std::vector<End>& its = ends_[processor];
  const auto end =
      std::lower_bound(its.begin(), its.end(), turn,
                       [](const End& e, std::uint64_t number) { return e.turn < number; });
  if (end == its.begin()) return 0;
  const Position position = std::prev(end)->position;
  const bool repeats = end != its.end() && end->position.instruction == position.instruction;
  return repeats ? position.instruction : begun(position);
}

}  // namespace citcat
