#pragma once
// The state that a recording without the driver begins with: the emulator's view of the processor
// as words of driver-kmod/uapi/citcat_dump.h, of layout version 2 where the processor has long
// mode.

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "monitor/log/logged_state.h"
#include "monitor/state/fpu_image.h"

namespace citcat::monitor {

/// What a processor with long mode has besides what the emulator prints.
struct LongModeRegisters {
  std::uint64_t cr8 = 0, fs_base = 0, gs_base = 0, kernel_gs_base = 0;
};

/// The answers of CPUID.
struct CpuidAnswer {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// Facts about the processor's model that instructions have shown while nothing was recorded.
struct ModelFacts {
  std::map<std::uint32_t, std::uint64_t> msrs;  ///< as WRMSR wrote them
  /// By leaf and sub-leaf. Of leaves without sub-leaves the latter is 0.
  std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidAnswer> cpuid;
  std::uint64_t xcr0 = kX87State;  ///< as XSETBV wrote it (Intel SDM vol. 3, table 9-1)

  void note_cpuid(std::uint32_t leaf, std::uint32_t subleaf, const CpuidAnswer& answer);
};

/// `ip`: the emulator keeps its own up to date at some places only. `ram_bytes`: of the machine.
std::vector<std::uint32_t> state_block(const LoggedState& state, std::uint64_t ip,
                                       const std::optional<LongModeRegisters>& wide,
                                       const ModelFacts& facts, std::uint32_t ram_bytes);

}  // namespace citcat::monitor
