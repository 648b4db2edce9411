#include "debugger/target/machine_target.h"

#include <algorithm>
#include <utility>

namespace citcat {
namespace {

/// Turns of the bus in which all processors are searched before any goes farther; four times as
/// many whenever nothing was found.
constexpr std::uint64_t kFirstTurns = 64;

}  // namespace

MachineTarget::MachineTarget(std::vector<DebugTarget*> processors, BusTurns turns,
                             ForeignWrites foreign)
    : processors_(std::move(processors)),
      turns_(std::move(turns)),
      told_(processors_.size()),
      foreign_(std::move(foreign)),
      known_(processors_.size()) {
  for (std::size_t p = 0; foreign_ && p < size(); ++p) {
    processors_[p]->leave_out(
        [this, p](const StopHit& hit) { return !alone_ && is_foreign(p, hit); });
  }
}

/// Whether another processor made the write that this one notices.
bool MachineTarget::is_foreign(std::size_t p, const StopHit& hit) {
  if (!known_[p]) {
    known_[p].emplace();
    const std::vector<bool> foreign = foreign_(p);
    std::size_t i = 0;
    for (const ExternalWrite& write : processors_[p]->file().recording().external_writes) {
      known_[p]->insert_or_assign({write.address, write.position}, foreign[i++]);
    }
  }
  // The hit has the last place before the write where a replay can be.
  const auto write = known_[p]->lower_bound({hit.address, hit.at.position});
  return write != known_[p]->end() && write->first.first == hit.address && write->second;
}

void MachineTarget::insert(StopKind kind, LinearAddr address, std::uint32_t size) {
  for (DebugTarget* const its : processors_) its->insert(kind, address, size);
}

void MachineTarget::remove(StopKind kind, LinearAddr address, std::uint32_t size) {
  for (DebugTarget* const its : processors_) its->remove(kind, address, size);
}

// ---------------------------------------------------------------------------------------------
// Where they are

bool MachineTarget::moves_alone(std::size_t p, bool alone) {
  return alone_ = alone || size() == 1 || processors_[p]->forked();
}

std::uint64_t MachineTarget::turn_of(std::size_t p) const {
  return turns_.turn_of(p, processors_[p]->timeline().position());
}

/// The turn in which `p` met what a move forwards ended at: a watchpoint is met by the instruction
/// before the place where the move ends, a breakpoint by the one that comes next.
std::uint64_t MachineTarget::turn_met(std::size_t p, const MoveEnd& end) const {
  if (end.why != MoveEnd::Why::watchpoint) return turn_of(p);
  return turns_.turn_before(p, processors_[p]->timeline().position());
}

MachineTarget::Start::Start(MachineTarget& machine) : machine_(machine) {
  for (DebugTarget* const its : machine.processors_) {
    moments_.push_back(its->timeline().moment());
    marks_.push_back(its->timeline().mark());
  }
}

MachineTarget::Start::~Start() {
  for (std::size_t p = 0; p < marks_.size(); ++p)
    machine_.processors_[p]->timeline().forget(marks_[p]);
}

void MachineTarget::Start::return_to(std::size_t p) const {
  ReplayTimeline& its = machine_.processors_[p]->timeline();
  if (its.moment() != moments_[p]) its.return_to(marks_[p]);
}

void MachineTarget::take_to(std::size_t p, std::uint64_t instruction) {
  ReplayTimeline& its = processors_[p]->timeline();
  if (its.position().instruction != instruction) its.seek({instruction, 0});
}

/// Takes the others to where `turn` begins, each only in the direction of the move: one that was
/// taken beyond that by itself stays where it was at `start`.
void MachineTarget::take_others(std::size_t p, std::uint64_t turn, const Start& start,
                                Direction direction) {
  for (std::size_t q = 0; q < size(); ++q) {
    if (q == p || processors_[q]->forked()) continue;
    const std::uint64_t there = turns_.before(q, turn), began = start.instruction(q);
    const bool moves = direction == Direction::on ? there > began : there < began;
    moves ? take_to(q, there) : start.return_to(q);
  }
}

void MachineTarget::follow(std::size_t p) {
  if (moves_alone(p, false)) return;
  const std::uint64_t turn = turn_of(p);
  for (std::size_t q = 0; q < size(); ++q) {
    if (q != p && !processors_[q]->forked()) take_to(q, turns_.before(q, turn));
  }
}

MachineMoveEnd MachineTarget::told(MachineMoveEnd end) {
  told_[end.processor] = processors_[end.processor]->timeline().moment();
  return end;
}

// ---------------------------------------------------------------------------------------------
// Forwards

/// One that was taken to a breakpoint by another's move has not met it yet.
bool MachineTarget::is_untold_breakpoint(std::size_t p) const {
  return told_[p] != processors_[p]->timeline().moment() &&
         processors_[p]->breakpoint_here().has_value();
}

/// Goes on to the next stop, or beyond where `turn` begins.
void MachineTarget::search_on(std::size_t p, std::uint64_t turn, Found& found,
                              const Interrupt& interrupt, bool& interrupted) {
  DebugTarget& its = *processors_[p];
  const std::uint64_t bound = turns_.before(p, turn);
  const auto is_beyond = [&] { return its.timeline().position().instruction >= bound; };
  if (found.met || found.searched_out || is_beyond()) return;
  const MoveEnd end = its.go_on([&] {
    interrupted = interrupted || (interrupt && interrupt());
    return interrupted || is_beyond();
  });
  if (end.why == MoveEnd::Why::interrupted) return;
  if (end.why == MoveEnd::Why::end) {
    found.searched_out = true;
    return;
  }
  found.met = end;
  found.turn = turn_met(p, end);
}

std::optional<std::size_t> MachineTarget::earliest(const std::vector<Found>& found) const {
  std::optional<std::size_t> first;
  for (std::size_t q = 0; q < found.size(); ++q) {
    if (found[q].met && (!first || found[q].turn < found[*first].turn)) first = q;
  }
  return first;
}

MachineMoveEnd MachineTarget::go_on(std::size_t p, bool alone, const Interrupt& interrupt) {
  if (moves_alone(p, alone)) return told({processors_[p]->go_on(interrupt), p});
  const Start start(*this);
  std::vector<Found> found(size());
  std::uint64_t turn = turns_.count() + size();
  for (std::size_t q = 0; q < size(); ++q) {
    if (processors_[q]->forked()) {
      found[q].searched_out = true;
      continue;
    }
    turn = std::min(turn, turn_of(q));
    if (q != p && is_untold_breakpoint(q))
      found[q] = {false, processors_[q]->breakpoint_here(), turn_of(q)};
  }
  bool interrupted = false;
  const std::uint64_t end = turns_.count() + size();
  for (std::uint64_t turns = kFirstTurns; turn < end && !interrupted; turns *= 4) {
    turn = std::min(turn + turns, end);
    for (std::size_t q = 0; q < size() && !interrupted; ++q)
      search_on(q, turn, found[q], interrupt, interrupted);
    if (interrupted) break;
    const auto first = earliest(found);
    if (!first || found[*first].turn >= turn) continue;
    take_others(*first, found[*first].turn, start, Direction::on);
    return told({*found[*first].met, *first});
  }
  if (!interrupted) {
    // After the last turn each goes to its end.
    for (std::size_t q = 0; q < size(); ++q) {
      Found& its = found[q];
      if (its.met || its.searched_out) continue;
      const MoveEnd last = processors_[q]->go_on(interrupt);
      if (last.why == MoveEnd::Why::interrupted) interrupted = true;
      if (last.why == MoveEnd::Why::breakpoint || last.why == MoveEnd::Why::watchpoint)
        its = {false, last, turn_met(q, last)};
    }
    if (const auto first = earliest(found)) {
      take_others(*first, found[*first].turn, start, Direction::on);
      return told({*found[*first].met, *first});
    }
  }
  if (!interrupted) return told({{MoveEnd::Why::end}, p});
  std::uint64_t reached = end;
  for (std::size_t q = 0; q < size(); ++q) reached = std::min(reached, turn_of(q));
  take_others(size(), reached, start, Direction::on);
  return told({{MoveEnd::Why::interrupted}, p});
}

/// What the others meet before `p` is due; then they are where the bus shows them at its turn.
std::optional<MachineMoveEnd> MachineTarget::others_met(std::size_t p, const Interrupt& interrupt) {
  const std::uint64_t turn = turn_of(p);
  const auto is_due = [&](std::size_t q) {
    return q != p && !processors_[q]->forked() &&
           turns_.before(q, turn) > processors_[q]->timeline().position().instruction;
  };
  bool any = false;
  for (std::size_t q = 0; q < size(); ++q) any = any || is_due(q);
  if (!any) return std::nullopt;
  const Start start(*this);
  std::vector<Found> found(size());
  bool interrupted = false;
  for (std::size_t q = 0; q < size(); ++q) {
    if (!is_due(q)) continue;
    if (is_untold_breakpoint(q)) {
      found[q] = {false, processors_[q]->breakpoint_here(), turn_of(q)};
    } else if (processors_[q]->has_stops()) {
      search_on(q, turn, found[q], interrupt, interrupted);
    }
    if (found[q].turn >= turn) found[q].met.reset();
  }
  const auto first = earliest(found);
  take_others(first.value_or(p), first ? found[*first].turn : turn, start, Direction::on);
  if (first) return told({*found[*first].met, *first});
  if (interrupted) return told({{MoveEnd::Why::interrupted}, p});
  return std::nullopt;
}

MachineMoveEnd MachineTarget::step(std::size_t p, bool alone, const Interrupt& interrupt) {
  if (!moves_alone(p, alone)) {
    if (const auto met = others_met(p, interrupt)) return *met;
  }
  return told({processors_[p]->step(), p});
}

MachineMoveEnd MachineTarget::step_in_range(std::size_t p, LinearAddr first, std::uint32_t size,
                                            bool alone, const Interrupt& interrupt) {
  DebugTarget& its = *processors_[p];
  if (moves_alone(p, alone)) return told({its.step_in_range(first, size, interrupt), p});
  for (;;) {
    const MachineMoveEnd end = step(p, false, interrupt);
    if (end.processor != p || end.end.why != MoveEnd::Why::moved) return end;
    if (const auto met = its.breakpoint_here()) return told({*met, p});
    if (its.address(its.next_instruction().value - first.value).value >= size) return end;
    if (interrupt && interrupt()) return told({{MoveEnd::Why::interrupted}, p});
  }
}

// ---------------------------------------------------------------------------------------------
// Back

MachineMoveEnd MachineTarget::step_back(std::size_t p) {
  const MoveEnd end = processors_[p]->step_back();
  if (!moves_alone(p, false)) {
    const std::uint64_t turn = turn_of(p);
    for (std::size_t q = 0; q < size(); ++q) {
      const std::uint64_t there = turns_.before(q, turn);
      const bool moves = q != p && !processors_[q]->forked() &&
                         there < processors_[q]->timeline().position().instruction;
      if (moves) take_to(q, there);
    }
  }
  return told({end, p});
}

MachineMoveEnd MachineTarget::go_back(std::size_t p, const Interrupt& interrupt) {
  if (moves_alone(p, false)) return told({processors_[p]->go_back(interrupt), p});
  const Start start(*this);
  std::optional<MachineMoveEnd> last;
  std::uint64_t turn = 0;
  bool interrupted = false;
  for (std::size_t i = 0; i < size() && !interrupted; ++i) {
    const std::size_t q = (p + i) % size();  // what is looked for is often near this one
    if (processors_[q]->forked()) continue;
    // Nothing is of interest before what another one has met.
    const std::uint64_t bound = last ? turns_.before(q, turn) : 0;
    const MoveEnd end = processors_[q]->go_back([&] {
      interrupted = interrupted || (interrupt && interrupt());
      return interrupted || processors_[q]->timeline().position().instruction < bound;
    });
    const bool met = end.why == MoveEnd::Why::breakpoint || end.why == MoveEnd::Why::watchpoint;
    if (!met || (last && turn_of(q) < turn)) continue;
    last = {end, q};
    turn = turn_of(q);
  }
  if (interrupted) {
    // Nobody knows yet where they are to go.
    for (std::size_t q = 0; q < size(); ++q) start.return_to(q);
    return told({{MoveEnd::Why::interrupted}, p});
  }
  if (!last) return told({{MoveEnd::Why::beginning}, p});
  take_others(last->processor, turn, start, Direction::back);
  return told(*last);
}

}  // namespace citcat
