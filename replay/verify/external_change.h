#pragma once
// The effect of another bus master's write on the replay's memory; and whether it may be no write
// at all, but a wrongly captured bit of the read that showed it.

#include <cstdint>
#include <span>

#include "events/recording.h"
#include "replay/machine/memory.h"
#include "replay/verify/lone_change.h"

namespace citcat {

struct ExternalChange {
  unsigned bits = 0;  ///< of memory, that the write changes
  /// Only accessed or dirty bits of what may be a page-table entry: processors also set them for
  /// accesses they only foresaw (SDM vol. 3, 4.8). Asked where paging is on.
  bool marks_table_entry = false;
  std::uint64_t transaction = kNoTransaction;  ///< that showed it
};

class ExternalChanges {
 public:
  /// `schedule` must outlive the object. `ram_bytes`: of the machine, 0 if it is not known.
  ExternalChanges(const Schedule& schedule, std::uint32_t ram_bytes)
      : schedule_(schedule), lone_changes_(schedule.external_writes, ram_bytes) {}

  /// The next of the schedule's external writes is about to be made.
  ExternalChange observe(PhysAddr a, std::span<const std::uint8_t> bytes, const Memory& memory);
  // Those of LoneChanges.
  bool is_memory(PhysAddr a) const { return lone_changes_.is_memory(a); }
  bool stands_alone(PhysAddr a) { return lone_changes_.stands_alone(a); }

  /// How many were observed, to come back to.
  std::size_t seen() const { return seen_; }
  void restore(std::size_t seen) { seen_ = seen; }

 private:
  const Schedule& schedule_;
  LoneChanges lone_changes_;
  std::size_t seen_ = 0;
};

}  // namespace citcat
