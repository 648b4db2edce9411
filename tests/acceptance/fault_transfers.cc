// The faults of the injector that leave every byte as it was: transfers that stand in the capture
// twice, or in another order.

#include <fmt/format.h>

#include <utility>

#include "acceptance/fault_injection.h"

namespace citcat::test {
namespace {

std::size_t place_below(std::mt19937& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

/// What they write and where, not their counts.
void swap_contents(BusTransaction& a, BusTransaction& b) {
  std::swap(a, b);
  std::swap(a.index, b.index);
  std::swap(a.clock, b.clock);
  std::swap(a.position, b.position);
}

}  // namespace

/// Anything that reads memory, or writes a line back.
std::optional<FaultInjector::Fault> FaultInjector::repeat_transfer(std::mt19937& random) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = first_; i < transactions_.size(); ++i) {
    const BusTransaction& t = transactions_[i];
    const bool moved = t.op == BusOp::code_read || t.op == BusOp::data_read || t.has(kWriteBack);
    if (moved && !t.has(kStateWindow)) candidates.push_back(i);
  }
  if (candidates.empty()) return std::nullopt;
  const std::size_t at = candidates[place_below(random, candidates.size())];
  const BusTransaction& t = transactions_[at];
  inserted_ = {at, t};
  Fault fault{positions_[at], fmt::format("{} at {:08x}, transaction {}, twice", bus_op_name(t.op),
                                          t.address.value, t.index)};
  fault.transaction = t.index;
  return fault;
}

std::optional<FaultInjector::Fault> FaultInjector::swap_writes(std::mt19937& random) {
  std::vector<std::size_t> candidates;
  const auto is_write = [](const BusTransaction& t) {
    return t.op == BusOp::data_write && t.has(kPositionKnown) && !t.has(kStateWindow) &&
           !t.has(kWriteBack);
  };
  for (std::size_t i = first_; i + 1 < transactions_.size(); ++i) {
    const BusTransaction& a = transactions_[i];
    const BusTransaction& b = transactions_[i + 1];
    if (is_write(a) && is_write(b) && a.position.instruction == b.position.instruction &&
        a.address != b.address) {
      candidates.push_back(i);
    }
  }
  if (candidates.empty()) return std::nullopt;
  const std::size_t at = candidates[place_below(random, candidates.size())];
  BusTransaction& first = transactions_[at];
  swap_contents(first, transactions_[at + 1]);
  swapped_ = at;
  Fault fault{positions_[at], fmt::format("transactions {} and {} exchanged", first.index,
                                          transactions_[at + 1].index)};
  fault.transaction = first.index;
  return fault;
}

void FaultInjector::undo_swap() {
  if (swapped_) swap_contents(transactions_[*swapped_], transactions_[*swapped_ + 1]);
  swapped_.reset();
}

}  // namespace citcat::test
