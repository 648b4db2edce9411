// What has to be true of a comparison when the replay has ended.

#include <algorithm>

#include "replay/verify/verifier.h"

namespace citcat {

void Verifier::finish(Position end) {
  while (pull() && !has_position_beyond(end)) {
  }
  final_memory_.end();
  if (!writes_.empty() && is_left_at(writes_.front().t, end)) {
    stop_with({"the processor wrote memory and the replay did not", writes_.front().t,
               "the end of the replay"},
              end);
  }
  require(ports_.left_before(end), end);
  require(specials_.left_before(end), end);
  require(starts_.left_before(end, result_), end);
}

ReplayReport Verifier::finish(ReplayReport report) {
  if (report.end != ReplayReport::End::complete) return report;
  try {
    finish(machine_->position());
  } catch (const ReplayStopped& stop) {
    report.end = ReplayReport::End::diverged;
    report.divergence = make_divergence(stop);
  }
  return report;
}

std::optional<std::uint64_t> Verifier::first_missing() const {
  std::optional<std::uint64_t> first;
  for (const PendingWrite& w : writes_) {
    if (w.unmatched == 0) continue;
    first = w.t.index;
    break;
  }
  if (const BusTransaction* port = ports_.due()) {
    first = std::min(first.value_or(port->index), port->index);
  }
  return first;
}

FinalMemory Verifier::compare_final(const MemoryImage* captured) const {
  return final_memory_.compare(
      machine_->memory(), captured,
      [this](PhysAddr at, std::uint8_t byte) { return may_differ(at, byte); });
}

}  // namespace citcat
