#pragma once
// The stores of a capture by their number in bus order, for interrupts that show nothing else on
// the bus: their frame begins at one of these stores.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "events/port_transfers.h"
#include "events/recording.h"
#include "replay/infer/places/interrupt_evidence.h"
#include "replay/session/rewindable_evidence.h"

namespace citcat {

class StoreOrder {
 public:
  /// `shows_reads`: every read of the processor is on the bus.
  StoreOrder(RewindableEvidence::Open open, bool shows_reads, PortCount ports)
      : evidence_(std::move(open)), shows_reads_(shows_reads), ports_(ports) {}

  /// A store, or a port access, and what the bus shows before it.
  struct Access {
    std::uint64_t transaction = 0;
    BusAnchor anchor;
  };
  /// The first one that is not before `transaction`, then the stores before it, last first, at most
  /// `most` in all. Empty after the end of the evidence.
  std::vector<Access> from(std::uint64_t transaction, std::size_t most);
  /// The first one that is after so many bytes written to memory and moved through ports.
  std::optional<Access> behind(std::uint64_t writes, std::uint64_t io);
  /// What the bus shows around an interrupt whose first store is at `transaction`.
  InterruptEvidence around(std::uint64_t transaction);

  /// Nothing before this store will be asked for again, unless restart() is called.
  void pass(const Access& access);
  void restart() {
    begin_ = 0;
    counts_begin_ = {};
  }

 private:
  void rewind();
  bool next(BusTransaction& t, Access& access);

  RewindableEvidence evidence_;
  bool shows_reads_;
  PortCount ports_;
  std::uint64_t begin_ = 0;  ///< transactions read before what may be asked for
  BusAnchor counts_begin_, counts_;
};

}  // namespace citcat
