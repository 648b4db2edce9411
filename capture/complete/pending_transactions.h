#pragma once
// Transactions on their way from the capture, which shows a part of their addresses, to a reader
// that needs whole addresses.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "events/bus_transaction.h"

namespace citcat {

/// The kinds in which order counts: each has its own next transaction.
enum class CycleOrder : std::uint8_t {
  code,    ///< fetches
  data,    ///< what instructions do: memory, ports, acknowledges, halts
  starts,  ///< BusOp::instruction_start
  others,  ///< what says nothing of addresses
};
CycleOrder order_of(BusOp op);

/// A window of a capture. Transactions are named by their number since the first one put in.
class PendingTransactions {
 public:
  explicit PendingTransactions(std::function<bool(BusTransaction&)> next)
      : next_(std::move(next)) {}

  /// The transaction, which is read if need be; null after the end of the capture. Valid until the
  /// next call.
  const BusTransaction* at(std::uint64_t number);
  /// The first one of an order from `from` on; nullopt when the capture has none.
  std::optional<std::uint64_t> find(CycleOrder order, std::uint64_t from);
  /// It has this address.
  void complete(std::uint64_t number, PhysAddr address);

  /// The number of the first that was not handed out.
  std::uint64_t first() const { return first_; }
  /// Hands the first one out, if it is complete and before `limit`.
  bool take(BusTransaction& out, std::uint64_t limit);
  /// Makes the transactions of an order from `number` on incomplete again.
  void reopen(CycleOrder order, std::uint64_t number);

 private:
  struct Item {
    BusTransaction transaction;
    std::uint64_t address_shown = 0;  ///< as captured
    bool complete = false;
  };
  bool read_one();

  std::function<bool(BusTransaction&)> next_;
  std::deque<Item> items_;
  std::uint64_t first_ = 0;
  bool ended_ = false;
};

}  // namespace citcat
