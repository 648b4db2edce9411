#pragma once
// Port accesses: each transaction that shows one, or a part of one, is compared by itself, in the
// order of the bus.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "events/port_transfers.h"
#include "replay/verify/comparison_result.h"
#include "replay/verify/mismatch.h"

namespace citcat {

/// One access as the replay makes it.
struct PortUse {
  BusOp op = BusOp::io_read;  ///< or io_write
  std::uint16_t port = 0;
  std::uint32_t size = 0, value = 0;
};

class PortMatcher {
 public:
  PortMatcher(const BusModel& bus, CpuModel model) : bus_(bus, model) {}

  /// The bus shows this access, or this part of one.
  void expect(const BusTransaction& t) { waiting_.push_back(t); }
  std::size_t waiting() const { return waiting_.size(); }
  /// The transaction that is to agree next; null where none is known.
  const BusTransaction* due() const { return waiting_.empty() ? nullptr : &waiting_.front(); }

  /// The replay begins an access. observe() takes its parts one after the other until it is
  /// complete.
  PortAccess begin(const PortUse& use) const { return {bus_, use.port, use.size}; }
  /// Compares the transaction that is due with what is left of the access, and counts it. Of a read
  /// the value is not compared: the replay has it from the bus.
  std::optional<Mismatch> observe(PortAccess& access, const PortUse& use, Position now,
                                  ComparisonResult& result);

  /// At the end of the replay.
  std::optional<Mismatch> left_before(Position end) const;

 private:
  PortBus bus_;
  std::deque<BusTransaction> waiting_;
};

}  // namespace citcat
