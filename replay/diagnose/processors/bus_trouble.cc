#include "replay/diagnose/processors/bus_trouble.h"

#include <algorithm>
#include <deque>

#include "events/processors/bus_flags.h"
#include "events/processors/cross_check.h"

namespace citcat {
namespace {

/// Events that are kept before a trouble and after it.
constexpr std::size_t kBefore = 96, kBehind = 48, kOfLine = 64;
/// Events that are looked through for turns, and the turns that are kept.
constexpr std::size_t kFar = 2048, kMostTurns = 12;

ShownEvent shown(SharedEvent event, std::uint64_t note) {
  ShownEvent its;
  its.place = event.note ? BusPlace{event.processor, note, true}
                         : BusPlace{event.processor, event.t.index, false};
  its.clock = event.note ? event.note->clock : event.t.clock;
  its.event = std::move(event);
  return its;
}

PhysAddr address_of(const SharedEvent& event) {
  return event.note ? event.note->address : event.t.address;
}

bool is_of_memory(const SharedEvent& event) {
  return event.note ? event.note->kind != BusNote::Kind::message : event.t.is_memory();
}

/// When the bus showed the processor there for the first time, or was at a transaction.
std::optional<std::uint64_t> clock_of(const RecordingFile& file, const Divergence& divergence) {
  const std::unique_ptr<EvidenceReader> evidence = file.evidence();
  std::optional<std::uint64_t> clock;
  for (BusTransaction t; evidence->next(t);) {
    if (t.has(kClockKnown)) clock = t.clock;
    const bool there = divergence.transaction != kNoTransaction
                           ? t.index >= divergence.transaction
                           : t.has(kPositionKnown) && divergence.position <= t.position;
    if (there) break;
  }
  return clock;
}

/// What others do after a contradiction.
class Followers {
 public:
  Followers(const BusTrouble& trouble, BusNeighbourhood& near) : trouble_(trouble), near_(near) {}

  /// From the contradiction on; false when no further event is needed.
  bool take(const ShownEvent& its) {
    if (its.event.note) return true;
    if (its.event.processor == trouble_.processor) {
      if (last_) near_.turns.push_back(*last_);
      last_.reset();
      if (!near_.lock_end) near_.inside_lock = its;
    } else {
      last_ = its;
      const bool locked_write =
          its.event.t.op == BusOp::data_write && (its.event.t.flags & kLocked) != 0;
      // A write may go in parts.
      const bool ends = !near_.lock_end || its.event.t.position == near_.lock_end->event.t.position;
      if (locked_write && ends) near_.lock_end = its;
    }
    return near_.turns.size() < kMostTurns;
  }

 private:
  const BusTrouble& trouble_;
  BusNeighbourhood& near_;
  std::optional<ShownEvent> last_;  ///< of others, since the trouble's processor did something
};

}  // namespace

std::vector<BusTrouble> troubles_of(const MachineFile& machine,
                                    const std::vector<RecordingFile>& files,
                                    const MachineOutcome& outcome) {
  std::vector<BusTrouble> troubles;
  for (std::size_t p = 0; p < outcome.replays.size() && p < machine.processors(); ++p) {
    const std::optional<Divergence>& divergence = outcome.replays[p].divergence;
    if (!divergence) continue;
    BusTrouble trouble;
    trouble.processor = static_cast<std::uint8_t>(p);
    trouble.position = divergence->position;
    trouble.clock = clock_of(files[p], *divergence).value_or(0);
    if (divergence->shown && divergence->shown->is_memory())
      trouble.address = divergence->shown->address;
    troubles.push_back(trouble);
  }
  if (outcome.bus.first) {
    const BusContradiction& first = *outcome.bus.first;
    BusTrouble trouble;
    trouble.processor = first.processor;
    trouble.clock = first.t.clock;
    if (first.t.has(kPositionKnown)) trouble.position = first.t.position;
    trouble.address = first.t.address;
    trouble.is_contradiction = true;
    troubles.push_back(trouble);
  }
  std::stable_sort(troubles.begin(), troubles.end(),
                   [](const BusTrouble& a, const BusTrouble& b) { return a.clock < b.clock; });
  return troubles;
}

BusNeighbourhood neighbourhood_of(const MachineFile& machine,
                                  const std::vector<RecordingFile>& files,
                                  const BusTrouble& trouble, std::uint32_t line_bytes) {
  std::deque<ShownEvent> around, line;
  BusNeighbourhood near;
  Followers followers(trouble, near);
  bool follows = trouble.is_contradiction;
  SharedBus bus = shared_bus_of(machine, files);
  CrossCheck check = cross_check_of(machine, files);
  std::uint64_t note = 0;
  std::size_t behind = 0;
  for (SharedEvent event; (behind < kBehind || (follows && behind < kFar)) && bus.next(event);) {
    const ShownEvent its = shown(std::move(event), note);
    if (its.place.is_note) ++note;
    if (trouble.is_contradiction && its.clock <= trouble.clock) {
      const BusTransaction& t = its.event.t;
      const bool is_it = its.clock == trouble.clock && !its.event.note &&
                         its.event.processor == trouble.processor && t.address == trouble.address;
      for (std::uint32_t i = 0; is_it && i < t.size; ++i)
        near.left.push_back(check.byte(t.address.plus32(i)));
      check.take(its.event);
    }
    if (follows && its.clock >= trouble.clock) follows = followers.take(its);
    if (behind >= kBehind) {
      ++behind;
      continue;
    }
    const bool on_line =
        trouble.address && is_of_memory(its.event) &&
        address_of(its.event).value / line_bytes == trouble.address->value / line_bytes;
    if (on_line) {
      line.push_back(its);
      if (line.size() > kOfLine) line.pop_front();
    }
    if (its.clock > trouble.clock) ++behind;
    around.push_back(its);
    if (around.size() > kBefore + kBehind) around.pop_front();
  }
  near.events.assign(around.begin(), around.end());
  near.line.assign(line.begin(), line.end());
  return near;
}

}  // namespace citcat
