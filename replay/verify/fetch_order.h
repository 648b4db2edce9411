#pragma once
// Finds fetches at the pins of an 8086 that do not follow one another.
//
// It fetches what follows into its queue, and elsewhere only once a jump or an interrupt has
// emptied that; the queue status pins then report the instruction there as the next one (Intel
// 8086 data sheet, "Queue Status"). After a fetch that is in a capture twice, or is missing, comes
// an instruction from the bytes that the queue still had.

#include <cstdint>
#include <optional>

#include "events/bus_transaction.h"
#include "events/machine/code_fetch.h"

namespace citcat {

class FetchOrder {
 public:
  static constexpr const char* kReason =
      "code was fetched from elsewhere, and the instruction reported next is not from there";

  /// `address_mask`: the address bits that the capture has.
  explicit FetchOrder(std::uint32_t address_mask) : mask_(address_mask) {}

  /// `t` is what the capture shows next. True where it is an instruction that cannot have come from
  /// the queue.
  bool observe(const BusTransaction& t) {
    if (t.op == BusOp::instruction_start) return started(t);
    if (t.op != BusOp::code_read) return false;
    const PhysAddr at = t.address.masked32(mask_);
    const bool goes_on = !next_ || goes_on_fetching(*next_, at, mask_);
    if (!goes_on && !changes_segment_) target_ = at;
    next_ = at.plus32(t.size).masked32(mask_);
    return false;
  }

 private:
  bool started(const BusTransaction& t) {
    if (!t.has(kPrefix)) changes_segment_ = loads_cs(t);
    const bool elsewhere = target_ && *target_ != t.address.masked32(mask_);
    target_.reset();
    return elsewhere;
  }
  /// POP CS and MOV CS, which the 8086 executes: what is fetched next is from the new segment.
  static bool loads_cs(const BusTransaction& start) {
    constexpr std::uint8_t kPopCs = 0x0f, kMovSegment = 0x8e;
    return start.data[0] == kPopCs || start.data[0] == kMovSegment;
  }

  std::uint32_t mask_;
  std::optional<PhysAddr> next_;    ///< to be fetched, unless the queue is emptied
  std::optional<PhysAddr> target_;  ///< where the queue was filled from after it was emptied
  bool changes_segment_ = false;    ///< the instruction begun loads CS and leaves the queue alone
};

}  // namespace citcat
