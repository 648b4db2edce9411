#include "capture/complete/pending_transactions.h"

#include <algorithm>

#include "formats/io/error.h"

namespace citcat {
namespace {

/// Interrupt acknowledges and halts put no address on the bus.
bool has_address(BusOp op) {
  switch (op) {
    case BusOp::code_read:
    case BusOp::data_read:
    case BusOp::data_write:
    case BusOp::io_read:
    case BusOp::io_write:
    case BusOp::instruction_start:
      return true;
    default:
      return false;
  }
}

}  // namespace

CycleOrder order_of(BusOp op) {
  switch (op) {
    case BusOp::code_read:
      return CycleOrder::code;
    case BusOp::data_read:
    case BusOp::data_write:
    case BusOp::io_read:
    case BusOp::io_write:
    case BusOp::interrupt_acknowledge:
    case BusOp::halt:
      return CycleOrder::data;
    case BusOp::instruction_start:
      return CycleOrder::starts;
    default:
      return CycleOrder::others;
  }
}

bool PendingTransactions::read_one() {
  if (ended_) return false;
  Item item;
  if (!next_(item.transaction)) {
    ended_ = true;
    return false;
  }
  item.address_shown = item.transaction.address.value;
  item.complete = !has_address(item.transaction.op);
  items_.push_back(item);
  return true;
}

const BusTransaction* PendingTransactions::at(std::uint64_t number) {
  CITCAT_ASSERT(number >= first_);
  while (number - first_ >= items_.size())
    if (!read_one()) return nullptr;
  return &items_[number - first_].transaction;
}

std::optional<std::uint64_t> PendingTransactions::find(CycleOrder order, std::uint64_t from) {
  // Those before the first one were complete, so that nobody looks for them.
  for (std::uint64_t number = std::max(from, first_);; ++number) {
    const BusTransaction* const t = at(number);
    if (t == nullptr) return std::nullopt;
    if (order_of(t->op) == order) return number;
  }
}

void PendingTransactions::complete(std::uint64_t number, PhysAddr address) {
  if (at(number) == nullptr) return;
  Item& item = items_[number - first_];
  item.transaction.address = address;
  item.complete = true;
}

bool PendingTransactions::take(BusTransaction& out, std::uint64_t limit) {
  if (items_.empty() || first_ >= limit || !items_.front().complete) return false;
  out = items_.front().transaction;
  items_.pop_front();
  ++first_;
  return true;
}

void PendingTransactions::reopen(CycleOrder order, std::uint64_t number) {
  for (std::uint64_t i = number < first_ ? 0 : number - first_; i < items_.size(); ++i) {
    Item& item = items_[i];
    if (order_of(item.transaction.op) != order) continue;
    item.complete = !has_address(item.transaction.op);
    item.transaction.address = PhysAddr{item.address_shown};
  }
}

}  // namespace citcat
