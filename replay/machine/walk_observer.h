#pragma once
// Reads and writes of page walks, for observers that compare them with the bus.

#include <cstdint>
#include <optional>
#include <span>

#include "events/machine/address.h"
#include "replay/machine/memory_access.h"

namespace citcat {

/// Notified of page-walk accesses.
class WalkObserver {
 public:
  virtual ~WalkObserver() = default;
  virtual void walk_read(PhysAddr entry, std::uint32_t size) = 0;
  /// Read by a walk that had no other effect than a TLB entry, some time within the code that runs
  /// unreported.
  virtual void quiet_walk_read(PhysAddr entry, std::uint32_t size) = 0;
  virtual void walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) = 0;
  virtual void mapping_used(LinearAddr page, PhysAddr frame) = 0;
  /// The TLB lost a translation for `access`, or for any where that is not execute: another needs
  /// its place, its page lies elsewhere by now, or an access to it faulted.
  virtual void mapping_evicted(Access access) = 0;
  /// A page-directory-pointer entry that no evidence defines: PAE processors read these at the
  /// CR3 load, which may have been before the capture began. Returns its value if the evidence
  /// shows it.
  virtual std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted) = 0;
};

/// The rights that a walk brings into the TLB. The architecture leaves them to the processor; they
/// decide how often page tables are read, nothing else.
enum class WalkPolicy : std::uint8_t {
  all_rights,      ///< whatever the tables allow
  rights_as_used,  ///< only what the walk was made for: a write after a read walks again, and so
                   ///< does a user after the supervisor
};

}  // namespace citcat
