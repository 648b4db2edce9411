#pragma once
// A segment or system descriptor as it is in a descriptor table (Intel SDM vol. 3, 3.4.5), and the
// vectors that its checks end in. Shared by the units that load descriptors.

#include <cstdint>

#include "events/machine/address.h"
#include "events/machine/cpu_state.h"
#include "x86/descriptor.h"

namespace citcat {

// EFLAGS (SDM vol. 1, figure 3-8).
inline constexpr std::uint32_t kFlagTf = 1u << 8, kFlagIf = 1u << 9, kFlagNt = 1u << 14,
                               kFlagRf = 1u << 16, kFlagVm = 1u << 17, kFlagAc = 1u << 18;

// Second dword of a descriptor.
inline constexpr std::uint32_t kDescAccessed = 1u << 8, kDescWritable = 1u << 9,
                               kDescConforming = 1u << 10, kDescCode = 1u << 11,
                               kDescSegment = 1u << 12, kDescPresent = 1u << 15,
                               kDescBusy = 1u << 9, kDescLong = 1u << 21, kDescWide = 1u << 22;

/// In the type of a task segment: it has the layout of the 80386 (SDM vol. 3, table 3-2).
inline constexpr std::uint32_t kWideTaskType = 8;

// Exceptions (SDM vol. 3, table 6-1).
inline constexpr std::uint8_t kDebug = 1, kDoubleFault = 8, kInvalidTss = 10, kNotPresent = 11,
                              kStackFault = 12, kProtection = 13, kPageFaultVector = 14;

/// Types of system descriptors (SDM vol. 3, table 3-2): bits 8 to 12 of the second dword.
enum class SystemType : std::uint8_t {
  tss16 = 1,
  ldt = 2,
  busy_tss16 = 3,
  call_gate16 = 4,
  task_gate = 5,
  interrupt_gate16 = 6,
  trap_gate16 = 7,
  tss32 = 9,
  busy_tss32 = 11,
  call_gate32 = 12,
  interrupt_gate32 = 14,
  trap_gate32 = 15,
};

struct Descriptor {
  std::uint16_t selector = 0;
  std::uint32_t low = 0, high = 0;
  LinearAddr linear;
  bool present() const { return (high & kDescPresent) != 0; }
  /// Bits 8 to 12; only a system descriptor's equals a SystemType.
  std::uint32_t type() const { return high >> 8 & 0x1f; }
  bool is(SystemType t) const { return type() == static_cast<std::uint32_t>(t); }
  bool is_system() const { return (high & kDescSegment) == 0; }
  bool is_code() const { return (high & (kDescSegment | kDescCode)) == (kDescSegment | kDescCode); }
  bool is_writable_data() const {
    return (high & (kDescSegment | kDescCode | kDescWritable)) == (kDescSegment | kDescWritable);
  }
  bool is_readable() const {
    constexpr std::uint32_t kUnreadable = kDescSegment | kDescCode;
    return !is_system() && (high & (kDescSegment | kDescCode | kDescWritable)) != kUnreadable;
  }
  bool conforming() const { return is_code() && (high & kDescConforming) != 0; }
  std::uint32_t dpl() const { return high >> 13 & 3; }
  /// Whether it is code that runs at the level `rpl` (SDM vol. 3, 5.8.1).
  bool is_code_of(std::uint32_t rpl) const {
    return is_code() && (conforming() ? dpl() <= rpl : dpl() == rpl);
  }
  // The selector in a gate.
  std::uint16_t gate_selector() const { return static_cast<std::uint16_t>(low >> 16); }
  std::uint32_t gate_offset() const { return (low & 0xffff) | (high & 0xffff0000); }

  Segment segment(std::uint16_t with_selector) const {
    return segment_of_descriptor(with_selector, low, high);
  }
};

/// What a segment register holds when `selector` was loaded in real or virtual-8086 mode (SDM vol.
/// 3, 20.1.1): the rest stays.
inline Segment real_mode_segment(Segment before, std::uint16_t selector) {
  before.selector = selector;
  before.base = std::uint32_t{selector} << 4;
  return before;
}

/// The bits of the stack pointer that count with this stack segment: its descriptor's B bit decides
/// (SDM vol. 3, 3.4.5).
inline std::uint32_t stack_mask(const Segment& stack) {
  return (stack.attributes & 0x4000) != 0 ? 0xffffffff : 0xffff;
}

}  // namespace citcat
