#include "events/machine/startup_state.h"

#include <algorithm>

namespace citcat {
namespace {

constexpr std::uint32_t kEfer = 0xc0000080, kFsBase = 0xc0000100, kGsBase = 0xc0000101;

/// The halves above those that CpuState() sets: zero all, but those registers that INIT leaves
/// alone.
LongModeState after_init(const LongModeState& before) {
  LongModeState after;
  after.xcr0 = before.xcr0;
  return after;
}

void mark_unknown(CpuState& state, const std::string& name) {
  if (is_unknown(state, name)) return;
  const std::vector<std::string> all = register_names(state.model);
  std::vector<std::string> unknown;
  for (const std::string& each : all) {
    if (each == name || is_unknown(state, each)) unknown.push_back(each);
  }
  state.unknown = std::move(unknown);
}

}  // namespace

CpuState state_after_init(const CpuState& before) {
  CpuState after;
  after.model = before.model;
  // CD and NW stay as they were (table 9-1, note 2).
  constexpr std::uint32_t kCachesOff = 0x60000000, kExtensionType = 0x10;
  after.cr0 = (before.cr0 & kCachesOff) | kExtensionType;
  after.segment[kCs] = {0xf000, 0xffff0000, 0xffff, 0x93, false};
  after.eip = 0xfff0;
  after.idtr.limit = 0xffff;
  // Untouched: A20 is the board's, the rest by the same table.
  after.a20_mask = before.a20_mask;
  after.smbase = before.smbase;
  after.tsc = before.tsc;
  after.fx = before.fx;
  after.msrs = before.msrs;
  after.cpuid = before.cpuid;
  after.ram_bytes = before.ram_bytes;
  after.ignore_cr0_cd = before.ignore_cr0_cd;
  for (Msr& msr : after.msrs) {
    if (msr.index == kEfer || msr.index == kFsBase || msr.index == kGsBase) msr.value = 0;
  }
  if (before.long_mode) after.long_mode = after_init(*before.long_mode);
  for (const char* const kept : {"a20_mask", "smbase", "tsc", "fx", "xcr0"}) {
    if (is_unknown(before, kept)) mark_unknown(after, kept);
  }
  mark_unknown(after, before.long_mode ? "rdx" : "edx");
  after.halted = true;
  return after;
}

CpuState state_after_reset(const CpuState& before, std::optional<std::uint32_t> signature) {
  CpuState after = state_after_init(before);
  constexpr std::uint32_t kCr0 = 0x60000010;
  constexpr std::uint32_t kApicBase = 0x1b, kPat = 0x277;
  constexpr std::uint64_t kApicOfFirst = 0xfee00900;         // SDM vol. 3, figure 10-5
  constexpr std::uint64_t kPatDefault = 0x0007040600070406;  // SDM vol. 3, 11.12.4
  after.cr0 = kCr0;
  after.a20_mask = 0xffffffff;
  after.smbase = kResetSmbase;
  after.tsc = 0;
  after.fx = CpuState::default_fx();
  for (Msr& msr : after.msrs) {
    msr.value = msr.index == kPat ? kPatDefault : msr.index == kApicBase ? kApicOfFirst : 0;
  }
  if (after.long_mode) after.long_mode->xcr0 = LongModeState().xcr0;
  after.unknown.clear();
  if (signature) {
    after.gpr[kEdx] = *signature;
  } else {
    mark_unknown(after, before.long_mode ? "rdx" : "edx");
  }
  after.halted = false;
  return after;
}

void start_up(CpuState& state, std::uint8_t vector) {
  Segment& cs = state.segment[kCs];
  cs.selector = static_cast<std::uint16_t>(vector << 8);
  cs.base = std::uint32_t{vector} << 12;
  state.eip = 0;
  state.halted = false;
}

}  // namespace citcat
