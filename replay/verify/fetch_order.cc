#include "replay/verify/fetch_order.h"

namespace citcat {

namespace {

/// POP CS and MOV CS, which the 8086 executes: what is fetched next is from the new segment.
bool loads_cs(const BusTransaction& start) {
  constexpr std::uint8_t kPopCs = 0x0f, kMovSegment = 0x8e;
  return start.data[0] == kPopCs || start.data[0] == kMovSegment;
}

}  // namespace

/// In a segment of code IP wraps at 64 KiB.
bool FetchOrder::follows(PhysAddr a) const {
  return !next_ || a == *next_ || a == next_->plus32(0u - 0x10000u).masked32(mask_);
}

bool FetchOrder::started(const BusTransaction& t) {
  if (!t.has(kPrefix)) changes_segment_ = loads_cs(t);
  const bool elsewhere = target_ && *target_ != t.address.masked32(mask_);
  target_.reset();
  return elsewhere;
}

bool FetchOrder::observe(const BusTransaction& t) {
  if (t.op == BusOp::instruction_start) return started(t);
  if (t.op != BusOp::code_read) return false;
  const PhysAddr at = t.address.masked32(mask_);
  if (!follows(at) && !changes_segment_) target_ = at;
  next_ = at.plus32(t.size).masked32(mask_);
  return false;
}

}  // namespace citcat
