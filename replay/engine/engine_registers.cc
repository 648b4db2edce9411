#include "replay/engine/engine_registers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "events/machine/control_bits.h"
#include "replay/engine/unicorn_internal.h"

namespace citcat {

using namespace env_layout;

std::uint32_t EngineRegisters::eflags() const {
  std::uint32_t v = 0;
  uc_reg_read(uc_, UC_X86_REG_EFLAGS, &v);
  return v | 2;
}

void EngineRegisters::set_eflags(std::uint32_t v) {
  check(uc_reg_write(uc_, UC_X86_REG_EFLAGS, &v), "write EFLAGS");
}

void EngineRegisters::write_raw_flags(const RawFlags& flags) {
  std::memcpy(env_ + kEflags, flags.data(), sizeof flags);
  // Between runs EFLAGS is whole: a run begins by taking the arithmetic flags from it.
  set_eflags(eflags());
}

void EngineRegisters::set_a20_mask(std::uint32_t mask) {
  put<std::uint64_t>(kA20Mask, static_cast<std::uint64_t>(
                                   static_cast<std::int64_t>(static_cast<std::int32_t>(mask))));
}

Segment EngineRegisters::read_segment(std::size_t offset) const {
  const std::uint32_t flags = get<std::uint32_t>(offset + 20);
  Segment s;
  s.selector = static_cast<std::uint16_t>(get<std::uint32_t>(offset));
  s.base = get<std::uint32_t>(offset + 8);
  s.limit = get<std::uint32_t>(offset + 16);
  s.attributes = static_cast<std::uint16_t>(flags >> 8 & 0xf0ff);
  s.unusable = (flags & 0x8000) == 0;
  return s;
}

void EngineRegisters::write_segment(std::size_t offset, const Segment& s) {
  put<std::uint32_t>(offset, s.selector);
  put<std::uint64_t>(offset + 8, s.base);
  put<std::uint32_t>(offset + 16, s.limit);
  // A null stack segment of long mode has the level that its selector has.
  const bool stack = wide_ && offset == env_layout::kSegments + kSegmentBytes * kSs;
  const std::uint32_t unusable = stack ? (s.selector & 3u) << 13 : 0;
  put<std::uint32_t>(offset + 20, s.unusable ? unusable : std::uint32_t{s.attributes} << 8);
}

TableRegister EngineRegisters::read_table(std::size_t offset) const {
  return {get<std::uint32_t>(offset + 8),
          static_cast<std::uint16_t>(get<std::uint32_t>(offset + 16))};
}

void EngineRegisters::write_table(std::size_t offset, TableRegister t) {
  put<std::uint64_t>(offset + 8, t.base);
  put<std::uint32_t>(offset + 16, t.limit);
}

void EngineRegisters::sync_mode() {
  const std::uint32_t flags = system_flags();
  const std::uint32_t cr0 = cr(0);
  const bool pe = (cr0 & 1) != 0;
  const bool vm = (flags & 0x20000) != 0;
  std::uint32_t h = hflags() & ~std::uint32_t{kHfCpl | kHfCs32 | kHfSs32 | kHfAddSeg | kHfPe |
                                              kHfMp | kHfEm | kHfTs | kHfOsFxsr | kHfSmap};
  // Intel SDM vol. 3, 5.5: CPL is the DPL of SS in protected mode, 3 in virtual-8086 mode.
  if (pe) h |= vm ? 3u : (segment_flags(kSs) >> 13 & 3u);
  if ((segment_flags(kCs) & 1u << 22) != 0) h |= kHfCs32;
  if ((segment_flags(kSs) & 1u << 22) != 0) h |= kHfSs32;
  h &= ~std::uint32_t{kHfLma | kHfCs64};
  if (wide_ && (efer() & kEferLma) != 0) {
    h |= kHfLma;
    // CS.L makes it 64-bit mode, in which code and stack are wide and no segment has a base.
    if ((segment_flags(kCs) & 1u << 21) != 0) h |= kHfCs64 | kHfCs32 | kHfSs32;
  }
  if ((h & kHfCs64) != 0) {
    // no segment is added
  } else if (!pe || vm || (h & kHfCs32) == 0 ||
             (segment_base(kDs) | segment_base(kEs) | segment_base(kSs)) != 0) {
    h |= kHfAddSeg;
  }
  if (pe) h |= kHfPe;
  h |= (cr0 >> 1 & 7) << 9;
  if ((cr(4) & 0x200) != 0) h |= kHfOsFxsr;
  // With it the engine keeps pages apart by EFLAGS.AC.
  if ((cr(4) & 1u << 21) != 0) h |= kHfSmap;
  set_hflags(h | kHfGuest);
}

void EngineRegisters::read_fx(std::span<std::uint8_t, 512> image) const {
  std::fill(image.begin(), image.end(), std::uint8_t{0});
  const auto store = [&](std::size_t at, auto v) { std::memcpy(&image[at], &v, sizeof v); };
  const std::uint32_t top = get<std::uint32_t>(kFpTop) & 7;
  const auto status = get<std::uint16_t>(kFpStatus);
  store(0, get<std::uint16_t>(kFpControl));
  store(2, static_cast<std::uint16_t>((status & ~0x3800) | top << 11));
  std::uint8_t tags = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (env_[kFpTags + i] == 0) tags = static_cast<std::uint8_t>(tags | 1u << i);
    std::memcpy(&image[32 + 16 * i], env_ + kFpRegs + 16 * ((top + i) & 7), 10);
    std::memcpy(&image[160 + 16 * i], env_ + kXmm + kXmmBytes * i, 16);
    if (wide_) std::memcpy(&image[288 + 16 * i], env_ + kXmm + kXmmBytes * (8 + i), 16);
  }
  store(4, tags);
  store(6, static_cast<std::uint16_t>(get<std::uint16_t>(kFpOpcode) & 0x7ff));
  if (wide_) {
    store(8, get<std::uint64_t>(kFpIp));
    store(16, get<std::uint64_t>(kFpDp));
  } else {
    store(8, get<std::uint32_t>(kFpIp));
    store(12, get<std::uint16_t>(kFpCs));
    store(16, get<std::uint32_t>(kFpDp));
    store(20, get<std::uint16_t>(kFpDs));
  }
  std::uint32_t mxcsr = 0;
  uc_reg_read(uc_, UC_X86_REG_MXCSR, &mxcsr);
  store(24, mxcsr);
}

void EngineRegisters::write_fx(std::span<const std::uint8_t, 512> image) {
  const auto load = [&]<class T>(std::size_t at, T) {
    T v;
    std::memcpy(&v, &image[at], sizeof v);
    return v;
  };
  std::uint16_t control = load(0, std::uint16_t{});
  check(uc_reg_write(uc_, UC_X86_REG_FPCW, &control), "write the x87 control word");
  const std::uint16_t status = load(2, std::uint16_t{});
  const std::uint32_t top = status >> 11 & 7u;
  put<std::uint16_t>(kFpStatus, static_cast<std::uint16_t>(status & ~0x3800));
  put<std::uint32_t>(kFpTop, top);
  for (std::size_t i = 0; i < 8; ++i) {
    env_[kFpTags + i] = static_cast<char>((image[4] >> i & 1) == 0);
    std::memcpy(env_ + kFpRegs + 16 * ((top + i) & 7), &image[32 + 16 * i], 10);
    std::memcpy(env_ + kXmm + kXmmBytes * i, &image[160 + 16 * i], 16);
    if (wide_) std::memcpy(env_ + kXmm + kXmmBytes * (8 + i), &image[288 + 16 * i], 16);
  }
  put<std::uint16_t>(kFpOpcode, load(6, std::uint16_t{}));
  if (wide_) {
    put(kFpIp, load(8, std::uint64_t{}));
    put(kFpDp, load(16, std::uint64_t{}));
  } else {
    put<std::uint64_t>(kFpIp, load(8, std::uint32_t{}));
    put<std::uint16_t>(kFpCs, load(12, std::uint16_t{}));
    put<std::uint64_t>(kFpDp, load(16, std::uint32_t{}));
    put<std::uint16_t>(kFpDs, load(20, std::uint16_t{}));
  }
  const std::uint32_t mxcsr = load(24, std::uint32_t{});
  check(uc_reg_write(uc_, UC_X86_REG_MXCSR, &mxcsr), "write MXCSR");
}

std::uint64_t EngineRegisters::msr(std::uint32_t index) const {
  uc_x86_msr m{index, 0};
  check(uc_reg_read(uc_, UC_X86_REG_MSR, &m), "read an MSR");
  return m.value;
}

void EngineRegisters::set_msr(std::uint32_t index, std::uint64_t value) {
  const uc_x86_msr m{index, value};
  check(uc_reg_write(uc_, UC_X86_REG_MSR, &m), "write an MSR");
}

}  // namespace citcat
