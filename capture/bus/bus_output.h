#pragma once
// The transactions that the decoders of the 80286 and its successors have decoded.

#include <cstdint>
#include <optional>
#include <string>

#include "capture/bus/bus_decoder.h"
#include "capture/bus/cycle_definitions.h"
#include "events/bus_transaction.h"
#include "formats/io/error.h"
#include "formats/memory/short_queue.h"

namespace citcat {

/// Transactions in bus order. Interrupt acknowledges come in pairs, the vector with the second.
class BusOutput {
 public:
  explicit BusOutput(std::string name) : name_(std::move(name)) {}

  void push(const BusTransaction& transaction) {
    if (first_acknowledge_)
      throw FormatError(name_, transaction.clock,
                        "expected the second interrupt acknowledge, found " +
                            std::string(bus_op_name(transaction.op)) +
                            " (check the cycle definition pins in the channel map)");
    ready_.push_back(transaction);
  }
  /// One of the two cycles. The first one's data mean nothing. `counted`, of the second: what was
  /// counted before the pair.
  void push_acknowledge(std::uint64_t clock, std::uint8_t data,
                        std::optional<std::uint64_t> counted = std::nullopt) {
    if (!first_acknowledge_) {
      first_acknowledge_ = clock;
      return;
    }
    BusTransaction transaction;
    transaction.op = BusOp::interrupt_acknowledge;
    transaction.clock = *first_acknowledge_;
    transaction.flags = kClockKnown;
    transaction.size = 1;
    transaction.data[0] = data;
    if (counted) {
      transaction.flags |= kPositionKnown;
      transaction.position = {*counted, 0};
    }
    first_acknowledge_.reset();
    push(transaction);
  }
  /// The first of a pair of acknowledges has been pushed, and the second has not.
  bool acknowledging() const { return first_acknowledge_.has_value(); }
  /// A cycle that moves no data.
  void push_special(BusOp op, std::uint64_t clock, std::uint8_t detail = 0) {
    BusTransaction transaction;
    transaction.op = op;
    transaction.clock = clock;
    transaction.flags = kClockKnown;
    if (op == BusOp::flush) {
      transaction.size = 1;
      transaction.data[0] = detail;
    }
    push(transaction);
  }
  bool take(BusTransaction& out) {
    if (ready_.empty()) return false;
    out = ready_.front();
    ready_.pop_front();
    return true;
  }

 private:
  std::string name_;
  ShortQueue<BusTransaction> ready_;
  std::optional<std::uint64_t> first_acknowledge_;
};

/// The bytes `lanes` (bit i: byte i of the bus word) as one transaction at `word` address, their
/// values from `data`. The lanes must be one run.
inline BusTransaction lanes_transaction(CycleKind kind, PhysAddr word, unsigned lanes,
                                        std::uint64_t data, std::uint64_t clock) {
  BusTransaction transaction;
  transaction.op = op_of(kind);
  transaction.clock = clock;
  transaction.flags = kClockKnown;
  unsigned first = 0;
  while (((lanes >> first) & 1) == 0) ++first;
  transaction.address = word.plus32(first);
  for (unsigned lane = first; lane < 8 && ((lanes >> lane) & 1) != 0; ++lane)
    transaction.data[transaction.size++] = static_cast<std::uint8_t>(data >> (8 * lane));
  return transaction;
}

/// Whether the set bits are one run without a hole, and there are any.
constexpr bool is_one_run(unsigned lanes) {
  if (lanes == 0) return false;
  while ((lanes & 1) == 0) lanes >>= 1;
  return (lanes & (lanes + 1)) == 0;
}

}  // namespace citcat
