#include "replay/machine/fast/tier_state.h"

#include <algorithm>

#include "replay/machine/units/table_descriptor.h"

namespace citcat::fast {

namespace {

/// Flags that images of EFLAGS never show.
constexpr std::uint32_t kHidden = kFlagRf | kFlagVm;
/// Instructions between two checks of what ends the run.
constexpr std::uint64_t kLongestRun = std::uint64_t{1} << 40;

}  // namespace

TierState::TierState(CpuContext& cpu) : cpu_(cpu) {
  for (auto& state : states) {
    state = std::make_unique<State>();
    state->jumps.fill(&kNowhere);
    state->batch_jumps.fill(&kNowhere);
  }
}

bool TierState::keeps_upper_halves() const {
  if (!cpu_.traits.has_long_mode || cpu_.bits64()) return false;
  std::uint64_t any = 0;
  for (int i = 0; i < 8; ++i) any |= cpu_.engine.wide().gpr(i);
  return any >> 32 != 0;
}

void TierState::take() {
  State& r = *(in_use = states[cpu_.user_mode() ? 1 : cpu_.mmu.overrides_smap() ? 2 : 0].get());
  if (cpu_.bits64()) {
    take_segments_of_64_bits();
  } else {
    take_segments();
  }
  for (int i = 0; i < general_registers(); ++i) {
    r.r[static_cast<std::size_t>(i)] = general_register(i);
  }
  const std::uint32_t flags = cpu_.engine.eflags();
  r.flags = LazyFlags::from(flags);
  r.eflags = flags & ~(kArithmeticFlags | kHidden);
  r.set_interrupts = false;
  r.untold = {};
  r.shift_count = 0;
  r.next_store = nullptr;
  r.least_left = 0;
  const std::uint32_t iopl = flags >> 12 & 3;
  const bool v86 = (flags & kFlagVm) != 0;
  r.iopl_allows = (cpu_.engine.cr(0) & 1) == 0 || (v86 ? iopl == 3 : cpu_.cpl() <= iopl);
  take_vectors();
  eip = cpu_.ip();
  iteration = 0;
  // Without an end the distance to it would not fit a signed number.
  limit = std::min(cpu_.blocks_until, cpu_.position.instruction + kLongestRun);
  r.left = static_cast<std::int64_t>(limit - cpu_.position.instruction);
}

/// Where CR0 or CR4 keeps SSE from programs, its instructions raise an exception (SDM vol.
/// 3, 13.1).
void TierState::take_vectors() {
  static_assert(State::kVectorStep == env_layout::kXmmBytes);
  constexpr std::uint32_t kEmulated = 4, kSwitched = 8, kOsFxsr = 0x200;
  State& r = *in_use;
  const bool usable =
      (cpu_.engine.cr(0) & (kEmulated | kSwitched)) == 0 && (cpu_.engine.cr(4) & kOsFxsr) != 0;
  r.vectors = usable ? cpu_.engine.vectors() : nullptr;
  r.mxcsr = cpu_.engine.mxcsr();
}

void TierState::take_segments() {
  State& r = *in_use;
  const Engine& engine = cpu_.engine;
  const bool any = !cpu_.protected_mode();
  std::uint8_t flat = 0;
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::size_t>(i);
    const std::uint32_t flags = engine.segment_flags(i), end = engine.segment_limit(i);
    r.segment_base[n] = engine.segment_base(i);
    r.selectors[n] = engine.segment_selector(i);
    const bool expand_down = (flags & 0x1c00) == 0x1400;
    const bool present = (flags & 0x8000) != 0, code = (flags & 0x800) != 0,
               bit = (flags & 0x200) != 0;
    // A limit of 4 GiB refuses nothing; an access that wraps there finds no page.
    constexpr std::int64_t kBehind = 32;
    const std::int64_t last = end == 0xffffffff ? std::int64_t{end} + kBehind : end;
    r.read_limit[n] = !expand_down && (any || (present && (!code || bit))) ? last : -1;
    r.write_limit[n] = !expand_down && (any || (present && !code && bit)) ? last : -1;
    const bool unlimited = end == 0xffffffff && r.read_limit[n] > 0 && r.write_limit[n] > 0;
    if (engine.segment_base(i) == 0 && unlimited) flat |= static_cast<std::uint8_t>(1u << i);
  }
  r.stack_mask = cpu_.stack_bits();
  shape.bits64 = false;
  shape.bits32 = (engine.hflags() & kHfCs32) != 0;
  shape.stack32 = cpu_.stack32();
  shape.real_or_v86 = any;
  shape.v86 = (engine.system_flags() & kFlagVm) != 0;
  shape.counts_zeros = cpu_.has_tzcnt || cpu_.has_lzcnt || cpu_.scans_untold;
  shape.flat = flat;
  shape.code_base = engine.segment_base(kCs);
  shape.code_limit = r.code_limit = engine.segment_limit(kCs);
}

/// Only FS and GS have a base, and none a limit (Intel SDM vol. 1, 3.4.2.1).
void TierState::take_segments_of_64_bits() {
  State& r = *in_use;
  const Engine& engine = cpu_.engine;
  shape = {};
  for (int i = 0; i < 6; ++i) {
    const auto n = static_cast<std::size_t>(i);
    r.segment_base[n] = cpu_.base_of(i);
    r.selectors[n] = engine.segment_selector(i);
    const bool flat = i != kFs && i != kGs && engine.wide().segment_base(i) == 0;
    if (flat) shape.flat |= static_cast<std::uint8_t>(1u << i);
  }
  shape.bits64 = true;
  shape.real_or_v86 = false;
  shape.code_limit = ~std::uint64_t{0};
}

void TierState::give_back() {
  State& r = *in_use;
  for (int i = 0; i < general_registers(); ++i) {
    const std::uint64_t value = r.r[static_cast<std::size_t>(i)];
    if (shape.bits64) {
      cpu_.engine.wide().set_gpr(i, value);
    } else {
      cpu_.engine.set_gpr(i, static_cast<std::uint32_t>(value));
    }
  }
  const std::uint32_t hidden = cpu_.engine.system_flags() & kHidden;
  cpu_.engine.set_eflags(r.eflags | r.flags.eflags() | hidden);
  cpu_.set_ip(eip);
  cpu_.position = {position(), iteration};
  cpu_.linear = shape.linear(eip);
}

}  // namespace citcat::fast
