#pragma once
// Finds fetches at the pins of an 8086 that do not follow one another.
//
// It fetches what follows into its queue, and elsewhere only once a jump or an interrupt has
// emptied that; the queue status pins then report the instruction there as the next one (Intel,
// 8086 Family User's Manual, 2.5 and "Queue Status"). A fetch that stands in a capture twice, or is
// missing, is followed by an instruction from what the queue still had.

#include <cstdint>
#include <optional>

#include "events/bus_transaction.h"

namespace citcat {

class FetchOrder {
 public:
  static constexpr const char* kReason =
      "code was fetched from elsewhere, and the instruction reported next is not from there";

  /// `address_mask`: the address bits that the capture has.
  explicit FetchOrder(std::uint32_t address_mask) : mask_(address_mask) {}

  /// `t` is what the capture shows next. True where it is an instruction that cannot have come from
  /// the queue.
  bool observe(const BusTransaction& t);

 private:
  bool follows(PhysAddr a) const;
  bool started(const BusTransaction& t);

  std::uint32_t mask_;
  std::optional<PhysAddr> next_;    ///< to be fetched, unless the queue is emptied
  std::optional<PhysAddr> target_;  ///< where the queue was filled from after it was emptied
  bool changes_segment_ = false;    ///< the instruction begun loads CS and leaves the queue alone
};

}  // namespace citcat
