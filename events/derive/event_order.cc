#include "events/derive/event_order.h"

namespace citcat {

void number_events_by_order(Recording& recording) {
  // External write k gets 2k + 1 and an interrupt the even number behind the writes before it, so
  // that both columns are steady.
  std::uint64_t before = 0;
  std::size_t next = 0;
  auto& writes = recording.external_writes;
  for (Interrupt& interrupt : recording.interrupts) {
    while (next < writes.size() && writes[next].transaction <= interrupt.transaction) {
      writes[next++].transaction = 2 * before++ + 1;
    }
    interrupt.transaction = 2 * before;
  }
  while (next < writes.size()) writes[next++].transaction = 2 * before++ + 1;
}

}  // namespace citcat
