#pragma once
// Accesses to the registers of the local APIC, which never leave the processor's chip (Intel SDM
// vol. 3, 10.4.1): a monitor that knows them reports them beside the bus.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "events/bus_transaction.h"

namespace citcat {

/// The rows APICRD and APICWR of a file of internal values, in their order, as what they would be
/// on a bus: reads and writes of an uncacheable address.
class RegisterAccesses {
 public:
  RegisterAccesses() = default;
  /// FormatError with the line number.
  explicit RegisterAccesses(const std::string& path);

  /// The next access, when it comes before `t`, which its processor drives: by an earlier
  /// instruction, or a read by one that then writes `t`. Null when `t` comes first.
  const BusTransaction* before(const BusTransaction& t) const;
  /// The next access, behind everything else; null when there is none.
  const BusTransaction* rest() const { return next_ < all_.size() ? &all_[next_] : nullptr; }
  /// The one after all others; null where there is none.
  const BusTransaction* last() const { return all_.empty() ? nullptr : &all_.back(); }
  void take() { ++next_; }

 private:
  std::vector<BusTransaction> all_;
  std::size_t next_ = 0;
};

}  // namespace citcat
