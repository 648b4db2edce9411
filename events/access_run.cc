#include "events/access_run.h"

#include <algorithm>

#include "events/smm_entry.h"

namespace citcat {

RunKind::RunKind(BusOp its_op, std::uint8_t its_size, std::uint16_t its_flags)
    : op(its_op), size(its_size), flags(its_flags) {
  std::fill_n(cover.begin() + kBusRecordData, size, std::uint8_t{0xff});
  const auto one = [](RunTotal total) { return std::uint64_t{1} << total; };
  if (op == BusOp::data_write) {
    const bool written_back = (flags & kWriteBack) != 0;
    totals = written_back ? 0 : one(kWrites);
    written = written_back ? 0 : size;
    kept_data = size;
  } else {
    reads.fill(~std::uint64_t{0});
    totals = one((flags & kLine) != 0 ? kLineFills : kReads);
    if (op == BusOp::data_read) totals += one(kDataReads);
  }
  const SmmEntryDetector::Watch watch = SmmEntryDetector::watch_of(op, flags);
  watch_mask = watch.mask;
  watch_value = watch.value;
}

BusTransaction AccessRun::at(std::size_t i) const {
  const BusRecord r = record(i);
  const RunKind& its = kind(i);
  BusTransaction t;
  t.index = index + i;
  t.clock = high_clock + r.clock;
  if (counted) t.position = {r.instructions - base, r.iterations};
  t.address = PhysAddr{r.address};
  t.op = its.op;
  t.size = its.size;
  t.flags = static_cast<std::uint16_t>(its.flags | (counted ? unsigned{kPositionKnown} : 0U));
  std::copy(r.data.begin(), r.data.end(), t.data.begin());
  return t;
}

}  // namespace citcat
