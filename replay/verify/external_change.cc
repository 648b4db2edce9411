#include "replay/verify/external_change.h"

#include <algorithm>
#include <bit>

namespace citcat {

namespace {

bool marks_table_entry(PhysAddr a, std::uint8_t before, std::uint8_t changed) {
  constexpr unsigned kPresent = 1, kAccessedOrDirty = 0x60;
  return changed != 0 && (changed & ~kAccessedOrDirty) == 0 && (before & kPresent) != 0 &&
         a.offset_in(4) == 0;
}

}  // namespace

ExternalChange ExternalChanges::observe(PhysAddr a, std::span<const std::uint8_t> bytes,
                                        const Memory& memory) {
  ExternalChange change;
  for (std::uint32_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t before = memory.defined_byte(a.plus32(i)).value_or(bytes[i]);
    const auto changed = static_cast<std::uint8_t>(before ^ bytes[i]);
    change.bits += static_cast<unsigned>(std::popcount(changed));
    change.marks_table_entry |= marks_table_entry(a.plus32(i), before, changed);
  }
  // The write itself, and the transaction that showed it, come with the schedule.
  const auto& writes = schedule_.external_writes;
  const auto shown = std::find_if(writes.from(std::min(seen_, writes.size())), writes.end(),
                                  [&](const ExternalWrite& w) { return w.address == a; });
  ++seen_;
  if (shown != writes.end()) change.transaction = shown->transaction;
  return change;
}

}  // namespace citcat
