#pragma once
// What a processor tells of itself and no bus shows: model-specific registers, counters and CPUID.

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/machine/cpu_context.h"

namespace citcat {

/// Values come from the recording where it has them (Environment::internal_read()), else from the
/// state that was loaded and what was written since; where neither has one the replay stops.
class ModelRegisters {
 public:
  /// All must outlive the object.
  explicit ModelRegisters(CpuContext& cpu) : cpu_(cpu) {}

  /// Takes those of the state.
  void load(const CpuState& state) {
    msrs_ = state.msrs;
    cpuid_ = state.cpuid;
    tsc_ = state.tsc;
  }
  void save(CpuState& state) const {
    state.msrs = msrs_;
    state.tsc = tsc_;
  }
  /// WRMSR.
  void write();

  /// nullopt where neither the state nor the program has set it.
  std::optional<std::uint64_t> find_msr(std::uint32_t index) const;
  /// RDTSC, RDPMC, RDMSR.
  void read_internal(InternalRead::Op op);
  /// CPUID.
  void cpuid();

 private:
  void set_msr(std::uint32_t index, std::uint64_t value);

  CpuContext& cpu_;

  std::vector<Msr> msrs_;  ///< in the order of their numbers
  std::vector<CpuidLeaf> cpuid_;
  std::uint64_t tsc_ = 0;
};

}  // namespace citcat
