#include "replay/infer/places/store_order.h"

namespace citcat {

void StoreOrder::rewind() {
  evidence_.seek(begin_);
  evidence_.hold();
  counts_ = counts_begin_;
}

/// The next store or port access; false at the end.
bool StoreOrder::next(BusTransaction& t, Access& access) {
  while (evidence_.next(t)) {
    const bool stores = t.op == BusOp::data_write && !t.has(kWriteBack);
    const bool port = t.op == BusOp::io_read || t.op == BusOp::io_write;
    if (!stores && !port) continue;
    access = {t.index, counts_};
    (stores ? counts_.writes : counts_.io) += stores ? t.size : ports_.of(t);
    return true;
  }
  return false;
}

std::vector<StoreOrder::Access> StoreOrder::from(std::uint64_t transaction, std::size_t most) {
  rewind();
  std::deque<Access> stores;
  BusTransaction t;
  for (Access access; next(t, access);) {
    if (access.transaction >= transaction) {
      stores.push_front(access);
      return {stores.begin(), stores.end()};
    }
    if (t.op != BusOp::data_write) continue;
    stores.push_front(access);
    if (stores.size() >= most) stores.pop_back();
  }
  return {};
}

std::optional<StoreOrder::Access> StoreOrder::behind(std::uint64_t writes, std::uint64_t io) {
  rewind();
  BusTransaction t;
  for (Access access; next(t, access);) {
    if (access.anchor.writes >= writes && access.anchor.io >= io) return access;
  }
  return std::nullopt;
}

InterruptEvidence StoreOrder::around(std::uint64_t transaction) {
  rewind();
  return scan_interrupt(transaction, shows_reads_, evidence_);
}

void StoreOrder::pass(const Access& access) {
  rewind();
  std::uint64_t before = begin_;
  BusAnchor counts = counts_;
  BusTransaction t;
  for (Access found; next(t, found) && found.transaction < access.transaction;) {
    before = evidence_.position() - 1;
    counts = found.anchor;
  }
  begin_ = before;
  counts_begin_ = counts;
}

}  // namespace citcat
