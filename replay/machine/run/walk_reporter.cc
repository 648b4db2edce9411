#include "replay/machine/run/walk_reporter.h"

#include "replay/machine/cpu_context.h"
#include "replay/machine/fast/fast_tier.h"

namespace citcat {

void WalkReporter::walk_read(PhysAddr entry, std::uint32_t size) {
  if (cpu_.wants_reads) cpu_.audience.read(entry, size, AccessKind::walk, cpu_.position);
}

void WalkReporter::quiet_walk_read(PhysAddr entry, std::uint32_t size) {
  if (cpu_.audience.judge() != nullptr && !cpu_.audience.wants_each_access()) {
    cpu_.audience.read_to_judge(entry, size, AccessKind::walk, cpu_.position);
  }
  if (cpu_.audience.wants_references() && !cpu_.audience.wants_no_walks()) {
    fast_.note_walk(entry, size);
  }
}

void WalkReporter::walk_write(PhysAddr entry, std::span<const std::uint8_t> bytes) {
  cpu_.audience.write(entry, bytes, AccessKind::walk, cpu_.position);
}

void WalkReporter::mapping_evicted(Access access) {
  cpu_.code.forget();
  fast_.forget_translations();
  // The engine must not keep what the processor's TLB lost, or it would never ask again. Where its
  // code lies is looked at before each block, and by CodeFetch::fetch().
  if (access != Access::execute) cpu_.engine.flush_tlb();
}

void WalkReporter::mapping_used(LinearAddr page, PhysAddr frame) {
  cpu_.audience.mapping(page, frame, cpu_.position);
}

std::optional<std::uint64_t> WalkReporter::missing_pdpte(unsigned index, LinearAddr wanted) {
  return cpu_.environment.missing_pdpte(index, wanted, cpu_.position);
}

}  // namespace citcat
