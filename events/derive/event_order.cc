#include "events/derive/event_order.h"

namespace citcat {

void number_events_by_order(Recording& recording) {
  // External write k gets 2k + 1 and an interrupt the even number after the writes before it, so
  // that both columns are steady.
  std::uint64_t before = 0;
  auto interrupt = recording.interrupts.begin();
  const auto end = recording.interrupts.end();
  recording.external_writes.change_each([&](ExternalWrite& write) {
    for (; interrupt != end && interrupt->transaction < write.transaction; ++interrupt) {
      interrupt->transaction = 2 * before;
    }
    write.transaction = 2 * before++ + 1;
  });
  for (; interrupt != end; ++interrupt) interrupt->transaction = 2 * before;
}

}  // namespace citcat
