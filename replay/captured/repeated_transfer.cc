#include "replay/captured/repeated_transfer.h"

namespace citcat {

namespace {

/// Data that is not cached is read as often as the instruction says, and page tables at times twice
/// in a row.
bool is_moved_once(const BusTransaction& t) {
  if (!t.has(kPositionKnown) || t.size == 0) return false;
  switch (t.op) {
    case BusOp::code_read:
      return true;
    case BusOp::data_read:
      return t.has(kLine);
    case BusOp::data_write:
      return t.has(kWriteBack);
    default:
      return false;
  }
}

}  // namespace

bool RepeatedTransfer::observe(const BusTransaction& t) {
  if (!is_moved_once(t)) {
    moving_ = false;
    return false;
  }
  const bool goes_on = moving_ && op_ == t.op && line_ == t.has(kLine) && position_ == t.position;
  if (goes_on && overlap(begin_, bytes_, t.address, t.size)) return true;
  if (goes_on && t.address == begin_.plus32(bytes_)) {
    bytes_ += t.size;
    return false;
  }
  moving_ = true;
  op_ = t.op;
  line_ = t.has(kLine);
  position_ = t.position;
  begin_ = t.address;
  bytes_ = t.size;
  return false;
}

}  // namespace citcat
