#include "monitor/delivery/event_log.h"

#include <utility>
#include <vector>

#include "monitor/log/exceptions.h"

namespace citcat::monitor {

/// A delivery that itself faults is followed in the log by another event at the same instruction;
/// it did not happen then.
void EventLog::take_new(const Insn& next) {
  const Flight& flight = seen_.flight;
  Recording& recording = seen_.recording;
  const bool may_have_interrupted = flight.insn != nullptr && cpu_.in_real_mode() &&
                                    (next.first_in_block || flight.delivers_itself());
  if (!cpu_.log.pending() && !may_have_interrupted) return;
  std::vector<LoggedEvent> real;
  LoggedEvent event, following;
  LogItem item = cpu_.log.next(event);
  bool fails = false;  // what `event` tells of, and the processor shuts down
  while (item == LogItem::event && recording.active()) {
    item = cpu_.log.next(following);
    fails = item == LogItem::shutdown;
    if (fails) break;
    const bool aborted = item == LogItem::event && !following.interrupts() && !following.software &&
                         following.pc == event.pc && following.before.gpr[4] == event.before.gpr[4];
    if (item == LogItem::event && !aborted) refuse_two_traps(event, following);
    if (event.real_mode)
      real.push_back(event);
    else if (recording.active())
      deliveries_.deliver(event, aborted ? &following : nullptr);
    std::swap(event, following);
  }
  if (!recording.active()) return;
  // What real mode delivered right before these can be known no more: the registers are others.
  if (item == LogItem::system_management)
    recording.give_up(
        "system management mode was entered, which this monitor does not record; leave it out of "
        "the machine with -machine pc,smm=off");
  else if (item == LogItem::shutdown || item == LogItem::reset)
    real.empty() ? resets_.take(item, fails ? following : event, fails ? &event : nullptr)
                 : recording.give_up("a reset came right after an interrupt of real mode");
  else if (may_have_interrupted || !real.empty())
    deliveries_.deliver_real(std::move(real), next);
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
