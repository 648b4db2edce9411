#pragma once
// The registers of a processor with long mode that 32-bit processors do not have: the part of the
// initial machine state that CpuState has only for such processors. Source: AMD64
// Architecture Programmer's Manual vol. 2, chapters 3 and 4; Intel SDM vol. 3, 2.2.1 and 2.5.

#include <array>
#include <cstdint>

namespace citcat {

/// Upper halves of registers whose lower halves are in CpuState, and further registers. Bits that
/// are reserved and zero in today's processors (in RFLAGS, CR0, DR6, ...) are kept as dumped.
struct LongModeState {
  std::array<std::uint32_t, 8> gpr_high{};  ///< of RAX to RDI, in Gpr order
  std::array<std::uint64_t, 8> r{};         ///< R8 to R15
  std::uint32_t rip_high = 0, rflags_high = 0;
  std::array<std::uint32_t, 6> base_high{};  ///< of segments, in SegmentRegister order
  std::uint32_t ldtr_base_high = 0, tr_base_high = 0;
  std::uint32_t gdtr_base_high = 0, idtr_base_high = 0;
  std::uint32_t cr0_high = 0, cr2_high = 0, cr3_high = 0, cr4_high = 0;
  std::array<std::uint32_t, 8> dr_high{};
  std::uint64_t cr8 = 0;   ///< the task priority, bits 0-3
  std::uint64_t efer = 0;  ///< MSR C0000080h
  std::uint64_t xcr0 = 1;  ///< as reset leaves it: x87 alone (SDM vol. 3, 2.6)
  bool operator==(const LongModeState&) const = default;
};

/// Calls `take` with every upper half, in the order in which an archive has them.
template <class Long, class Take>
void for_each_upper_half(Long& state, Take&& take) {
  for (auto& high : state.gpr_high) take(high);
  take(state.rip_high);
  take(state.rflags_high);
  for (auto& high : state.base_high) take(high);
  take(state.ldtr_base_high);
  take(state.tr_base_high);
  take(state.gdtr_base_high);
  take(state.idtr_base_high);
  take(state.cr0_high);
  take(state.cr2_high);
  take(state.cr3_high);
  take(state.cr4_high);
  for (auto& high : state.dr_high) take(high);
}

/// The same for every 64-bit register of which CpuState has no half.
template <class Long, class Take>
void for_each_whole(Long& state, Take&& take) {
  for (auto& r : state.r) take(r);
  take(state.cr8);
  take(state.efer);
  take(state.xcr0);
}

}  // namespace citcat
