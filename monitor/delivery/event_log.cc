#include "monitor/delivery/event_log.h"

#include <utility>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {

void EventLog::take_new(const Insn& next) {
  const Flight& flight = seen_.flight;
  Recording& recording = seen_.recording;
  bool may_have_interrupted = flight.insn != nullptr && cpu_.in_real_mode() &&
                              (next.first_in_block || flight.delivers_itself());
  if (!cpu_.log.pending() && !may_have_interrupted) return;
  std::vector<LoggedEvent> real;
  LoggedEvent event;
  std::optional<LoggedEvent> failed;
  LogItem item = take_deliveries(cpu_.log.next(event), event, real, failed);
  while ((item == LogItem::smi || item == LogItem::resumed) && recording.active()) {
    // What real mode delivered right before it can be known no more: the registers are others.
    if (!real.empty())
      return recording.give_up(
          "a system management interrupt came right after an interrupt of real mode");
    may_have_interrupted = false;
    const LogItem following = take_management(item, event);
    item = take_deliveries(following, event, real, failed);
  }
  if (!recording.active()) return;
  if (item == LogItem::shutdown || item == LogItem::reset)
    real.empty() ? resets_.take(item, event, failed ? &*failed : nullptr)
                 : recording.give_up("a reset came right after an interrupt of real mode");
  else if (may_have_interrupted || !real.empty())
    deliveries_.deliver_real(std::move(real), next);
}

/// Makes the deliveries that `item` and what follows it in the log tell of, but for those of real
/// mode, which go to `real`. Returns the first that is something else, with `event` as that. A
/// delivery that itself faults is followed in the log by another event at the same instruction; it
/// did not happen then. If the processor shut down, `failed` is the last one.
LogItem EventLog::take_deliveries(LogItem item, LoggedEvent& event, std::vector<LoggedEvent>& real,
                                  std::optional<LoggedEvent>& failed) {
  const Recording& recording = seen_.recording;
  LoggedEvent following;
  while (item == LogItem::event && recording.active()) {
    item = cpu_.log.next(following);
    const bool aborted = item == LogItem::event && !following.interrupts() && !following.software &&
                         following.pc == event.pc && following.before.gpr[4] == event.before.gpr[4];
    if (item == LogItem::shutdown)
      failed = event;
    else if (item == LogItem::event && !aborted)
      refuse_two_traps(event, following);
    if (failed) {
    } else if (event.real_mode) {
      real.push_back(event);
    } else if (recording.active()) {
      deliveries_.deliver(event, aborted ? &following : nullptr);
    }
    std::swap(event, following);
  }
  return item;
}

/// Returns what comes next in the log.
LogItem EventLog::take_management(LogItem item, LoggedEvent& event) {
  const std::uint64_t ip = event.before.ip;
  if (item == LogItem::smi)
    management_.enter(event.before);
  else
    management_.leave(event.before);
  if (!seen_.recording.active()) return LogItem::nothing;
  const LogItem following = cpu_.log.next(event);
  // The log has no NMI of real mode.
  if (item == LogItem::resumed && following == LogItem::nothing && cpu_.registers.ip() != ip)
    seen_.recording.give_up(
        "the emulator went on elsewhere than where system management mode returned to, for a "
        "reason that it does not show");
  return following;
}

/// Two #DB, of which the second comes before an instruction of the first one's handler: a processor
/// has one for all traps of an instruction (Intel SDM vol. 3, 17.2.3). But for a code breakpoint at
/// the handler.
void EventLog::refuse_two_traps(const LoggedEvent& first, const LoggedEvent& second) {
  const auto is_trap = [](const LoggedEvent& e) {
    return e.vector == kDebug && !e.software && !e.interrupts();
  };
  if (!is_trap(first) || !is_trap(second)) return;
  const LoggedState state = cpu_.registers.state();
  const std::uint64_t place = second.real_mode ? state.ip + state.segment[1].base : second.pc;
  for (unsigned n = 0; n < 4; ++n) {
    const bool enabled = (state.dr[7] >> (2 * n) & 3) != 0;
    const bool of_code = (state.dr[7] >> (16 + 4 * n) & 3) == 0;
    if (enabled && of_code && state.dr[n] == place) return;
  }
  seen_.recording.give_up("one instruction raised two #DB, where a processor raises one");
}

}  // namespace citcat::monitor
