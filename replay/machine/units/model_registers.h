#pragma once
// The processor's own values that no bus shows: model-specific registers, counters and CPUID.

#include <cstdint>
#include <optional>
#include <vector>

#include "replay/machine/cpu_context.h"
#include "x86/instruction_features.h"

namespace citcat {

/// Values come from the recording where it has them (Environment::internal_read()), else from the
/// state that was loaded and what was written since; where neither has one the replay stops.
// MSRs (SDM vol. 4, table 2-2).
inline constexpr std::uint32_t kMsrSysenterCs = 0x174, kMsrSysenterEsp = 0x175,
                               kMsrSysenterEip = 0x176, kMsrEfer = 0xc0000080,
                               kMsrStar = 0xc0000081, kMsrLongTarget = 0xc0000082,
                               kMsrSyscallMask = 0xc0000084, kMsrFsBase = 0xc0000100,
                               kMsrGsBase = 0xc0000101, kMsrKernelGsBase = 0xc0000102,
                               kMsrTscAux = 0xc0000103;

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
    state.cpuid = cpuid_;
    state.tsc = tsc_;
  }
  /// WRMSR.
  void write();

  /// nullopt where neither the state nor the program has set it.
  std::optional<std::uint64_t> find_msr(std::uint32_t index) const;
  /// 0 where it has not been set.
  std::uint64_t value_of(std::uint32_t msr) const { return find_msr(msr).value_or(0); }
  void set_msr(std::uint32_t index, std::uint64_t value);
  /// The processor says that it is one of AMD's (CPUID leaf 0).
  bool is_of_amd() const;
  /// It is an emulator's or a virtual machine's: QEMU sets that bit of CPUID whatever processor it
  /// plays, which every processor has clear (SDM vol. 2, CPUID; APM vol. 3, appendix E.3.2).
  bool is_emulated() const;
  /// A null selector that is loaded into FS or GS sets their base to 0.
  bool clears_base_of_null() const;
  /// What the state, or a CPUID that was executed since, has told of a leaf; null where nothing. A
  /// state tells the sub-leaves of a leaf by repeating that, in their order.
  const CpuidLeaf* cpuid_leaf(std::uint32_t leaf, unsigned subleaf = 0) const;
  /// By the answers of CPUID; nullopt where none of them tells.
  std::optional<bool> tells(const InstructionFeature& feature) const;
  /// By the answers of CPUID; where they do not say, everything that is executed here.
  bool has(const InstructionFeature& feature) const {
    return tells(feature).value_or(feature.executed);
  }
  /// The same, where what is not told forbids nothing.
  bool may_have(const InstructionFeature& feature) const { return tells(feature).value_or(true); }
  /// RDTSC, RDPMC, RDMSR.
  void read_internal(InternalRead::Op op);
  /// What the recording has of RDRAND or RDSEED.
  InternalRead random(InternalRead::Op op) const;
  /// CPUID.
  void cpuid();

 private:
  [[noreturn]] void refuse_without(InternalRead::Op op) const;
  void learn(std::uint32_t leaf, std::uint32_t subleaf, const InternalRead& answer);
  const CpuidLeaf* answer_to(std::uint32_t leaf, std::uint32_t subleaf) const;
  std::optional<InternalRead> read_or_fault(InternalRead::Op op);
  std::uint32_t with_osxsave(std::uint32_t ecx) const;

  CpuContext& cpu_;

  std::vector<Msr> msrs_;  ///< in the order of their numbers
  std::vector<CpuidLeaf> cpuid_;
  std::uint64_t tsc_ = 0;
};

}  // namespace citcat
