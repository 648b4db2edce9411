#include "monitor/qemu/turn_taking.h"

#include <vector>

#include "monitor/qemu/recorded_window.h"

namespace citcat::monitor {
namespace {

/// Gives what is new in the log to those whose it is. Those whose turn is over show it at once.
void share_log() {
  if (!monitor->log.pending()) return;
  std::vector<Candidate> candidates;
  for (const auto& one : monitor->processors)
    candidates.push_back(candidate_of(one->registers.state(), one->recorder.waits()));
  LoggedEvent event;
  while (monitor->log.pending()) {
    const LogItem item = monitor->log.next(event);
    if (item == LogItem::nothing) break;
    if (item == LogItem::reset && event.processor != 0) {
      if (event.processor < monitor->processors.size())
        monitor->processors[event.processor]->recorder.initialised();
      continue;
    }
    const auto number = item == LogItem::event ? whose(event, candidates) : 0;
    if (!number) {
      monitor->now->recorder.refuse(
          "the emulator does not say which processor an interrupt or exception belongs to");
      return;
    }
    monitor->processors[*number]->part->give(item, event);
  }
}

/// Another processor's turn begins, of several. What the others have done is shown first.
void take_turn(Processor& next) {
  Processor& before = *monitor->now;
  if (&before != &next) {
    const AsCurrent as(before);
    catch_up();
  }
  if (monitor->phase != Phase::recording) return;
  share_log();
  for (const auto& one : monitor->processors) {
    if (one.get() == &next || (one.get() != &before && !one->part->pending())) continue;
    const AsCurrent as(*one);
    one->recorder.resume();
    one->recorder.rest();
    if (!one->recorder.active()) return finish("error");
  }
  monitor->now = &next;
  next.recorder.resume();
}

}  // namespace

Processor& running() {
  if (monitor->several() && !monitor->now->registers.is_current())
    for (const auto& one : monitor->processors)
      if (one->registers.is_current()) return *one;
  return *monitor->now;
}

void hear() {
  if (!monitor->several()) return;
  Processor& one = running();
  if (monitor->phase != Phase::recording)
    monitor->now = &one;
  else if (&one != monitor->now || monitor->log.pending())
    take_turn(one);
}

void end_turn_in_time() {
  Processor& one = *monitor->now;
  if (one.recorder.instructions() < one.turn_ends) return;
  one.turn_ends = one.recorder.instructions() + monitor->turn_length.next();
  one.registers.stop_soon();
}

}  // namespace citcat::monitor
