#pragma once
// Reports page walks to the listeners.

#include <cstdint>
#include <optional>
#include <span>

#include "replay/machine/walk_observer.h"

namespace citcat {

class FastTier;
struct CpuContext;

/// What the MMU of `cpu` reports, at the position where `cpu` is.
class WalkReporter final : public WalkObserver {
 public:
  /// Neither need be constructed before the first walk; both must outlive the object.
  WalkReporter(CpuContext& cpu, FastTier& fast) : cpu_(cpu), fast_(fast) {}

  void walk_read(PhysAddr entry, std::uint32_t size) override;
  void quiet_walk_read(PhysAddr entry, std::uint32_t size) override;
  void walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) override;
  void mapping_used(LinearAddr page, PhysAddr frame) override;
  void mapping_evicted(Access access) override;
  std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted) override;

 private:
  CpuContext& cpu_;
  FastTier& fast_;
};

}  // namespace citcat
