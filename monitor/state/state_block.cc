#include "monitor/state/state_block.h"

#include <algorithm>

#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat::monitor {
namespace {

constexpr std::uint32_t kFsBase = 0xc0000100, kGsBase = 0xc0000101, kKernelGsBase = 0xc0000102;

class Words {
 public:
  void put(std::uint32_t offset, std::uint64_t value) {
    if (offset / 4 >= words_.size()) words_.resize(offset / 4 + 1);
    words_[offset / 4] = static_cast<std::uint32_t>(value);
  }
  /// A register of two words.
  void put_wide(std::uint32_t offset, std::uint64_t value) {
    put(offset, value);
    put(offset + 4, value >> 32);
  }
  std::vector<std::uint32_t> take() { return std::move(words_); }

 private:
  std::vector<std::uint32_t> words_;
};

/// The attributes of citcat_dump.h.
std::uint32_t attributes_of(const LoggedSegment& s) {
  constexpr std::uint32_t kPresent = 0x8000;
  const bool null = (s.flags & kPresent) == 0 && (s.selector & ~3u) == 0;
  return ((s.flags >> 8) & 0xf0ff) | (null ? CITCAT_SEGMENT_UNUSABLE : 0);
}

const LoggedSegment& segment_of(const LoggedState& state, unsigned n) {
  return n < 6 ? state.segment[n] : n == 6 ? state.ldtr : state.tr;
}

std::uint32_t a20_mask(const LoggedState& state) { return state.a20 ? 0xffffffff : 0xffefffff; }

/// CPUID leaves from `at` on, then MSRs and the end.
void put_model(Words& words, std::uint32_t at, const ModelFacts& facts) {
  const auto leaves = std::min<std::size_t>(facts.cpuid.size(), CITCAT_CPUID_MAX);
  words.put(at, leaves);
  at += 4;
  auto leaf = facts.cpuid.begin();
  for (std::size_t n = 0; n < leaves; ++n, ++leaf, at += CITCAT_CPUID_BYTES) {
    const CpuidAnswer& answer = leaf->second;
    words.put(at, leaf->first.first);
    words.put(at + 4, answer.eax);
    words.put(at + 8, answer.ebx);
    words.put(at + 12, answer.ecx);
    words.put(at + 16, answer.edx);
  }
  const auto msrs = std::min<std::size_t>(facts.msrs.size(), CITCAT_MSR_MAX);
  words.put(at, msrs);
  at += 4;
  auto msr = facts.msrs.begin();
  for (std::size_t n = 0; n < msrs; ++n, ++msr, at += CITCAT_MSR_BYTES) {
    words.put(at, msr->first);
    words.put_wide(at + 4, msr->second);
  }
  words.put(at, CITCAT_STATE_END);
}

std::vector<std::uint32_t> narrow_block(const LoggedState& state, std::uint64_t ip,
                                        const ModelFacts& facts, std::uint32_t ram_bytes) {
  Words words;
  words.put(CITCAT_STATE_MAGIC_OFFSET, CITCAT_STATE_MAGIC);
  words.put(CITCAT_STATE_VERSION_OFFSET, CITCAT_STATE_VERSION);
  for (unsigned n = 0; n < 8; ++n) words.put(CITCAT_STATE_GPR(n), state.gpr[n]);
  words.put(CITCAT_STATE_EIP, ip);
  words.put(CITCAT_STATE_EFLAGS, state.eflags);
  for (unsigned n = 0; n < 8; ++n) {
    const LoggedSegment& s = segment_of(state, n);
    words.put(CITCAT_STATE_SEGMENT(n) + CITCAT_SEGMENT_SELECTOR, s.selector);
    words.put(CITCAT_STATE_SEGMENT(n) + CITCAT_SEGMENT_BASE, s.base);
    words.put(CITCAT_STATE_SEGMENT(n) + CITCAT_SEGMENT_LIMIT, s.limit);
    words.put(CITCAT_STATE_SEGMENT(n) + CITCAT_SEGMENT_ATTRIBUTES, attributes_of(s));
  }
  words.put(CITCAT_STATE_GDTR_BASE, state.gdt_base);
  words.put(CITCAT_STATE_GDTR_LIMIT, state.gdt_limit);
  words.put(CITCAT_STATE_IDTR_BASE, state.idt_base);
  words.put(CITCAT_STATE_IDTR_LIMIT, state.idt_limit);
  words.put(CITCAT_STATE_CR0, state.cr0);
  words.put(CITCAT_STATE_CR2, state.cr2);
  words.put(CITCAT_STATE_CR3, state.cr3);
  words.put(CITCAT_STATE_CR4, state.cr4);
  for (unsigned n = 0; n < 4; ++n) words.put(CITCAT_STATE_DR(n), state.dr[n]);
  words.put(CITCAT_STATE_DR(4), state.dr[6]);
  words.put(CITCAT_STATE_DR(5), state.dr[7]);
  words.put(CITCAT_STATE_A20_MASK, a20_mask(state));
  words.put(CITCAT_STATE_RAM_BYTES, ram_bytes);
  for (unsigned n = 0; n < 128; ++n) words.put(CITCAT_STATE_FXSAVE + 4 * n, state.fx[n]);
  put_model(words, CITCAT_STATE_CPUID_COUNT, facts);
  return words.take();
}

/// The bases of FS and GS are MSRs too, and SWAPGS writes one that WRMSR wrote before.
ModelFacts with_bases(ModelFacts facts, const LongModeRegisters& wide) {
  facts.msrs[kFsBase] = wide.fs_base;
  facts.msrs[kGsBase] = wide.gs_base;
  facts.msrs[kKernelGsBase] = wide.kernel_gs_base;
  return facts;
}

std::vector<std::uint32_t> wide_block(const LoggedState& state, std::uint64_t ip,
                                      const LongModeRegisters& wide, const ModelFacts& facts,
                                      std::uint32_t ram_bytes) {
  Words words;
  words.put(CITCAT_STATE_MAGIC_OFFSET, CITCAT_STATE_MAGIC);
  words.put(CITCAT_STATE_VERSION_OFFSET, CITCAT_STATE2_VERSION);
  for (unsigned n = 0; n < 16; ++n) words.put_wide(CITCAT_STATE2_GPR(n), state.gpr[n]);
  words.put_wide(CITCAT_STATE2_RIP, ip);
  words.put_wide(CITCAT_STATE2_RFLAGS, state.eflags);
  for (unsigned n = 0; n < 8; ++n) {
    const LoggedSegment& s = segment_of(state, n);
    words.put(CITCAT_STATE2_SEGMENT(n) + CITCAT_SEGMENT2_SELECTOR, s.selector);
    words.put_wide(CITCAT_STATE2_SEGMENT(n) + CITCAT_SEGMENT2_BASE, s.base);
    words.put(CITCAT_STATE2_SEGMENT(n) + CITCAT_SEGMENT2_LIMIT, s.limit);
    words.put(CITCAT_STATE2_SEGMENT(n) + CITCAT_SEGMENT2_ATTRIBUTES, attributes_of(s));
  }
  words.put_wide(CITCAT_STATE2_GDTR_BASE, state.gdt_base);
  words.put(CITCAT_STATE2_GDTR_BASE + 8, state.gdt_limit);
  words.put_wide(CITCAT_STATE2_IDTR_BASE, state.idt_base);
  words.put(CITCAT_STATE2_IDTR_BASE + 8, state.idt_limit);
  words.put_wide(CITCAT_STATE2_CR0, state.cr0);
  words.put_wide(CITCAT_STATE2_CR2, state.cr2);
  words.put_wide(CITCAT_STATE2_CR3, state.cr3);
  words.put_wide(CITCAT_STATE2_CR4, state.cr4);
  words.put_wide(CITCAT_STATE2_CR8, wide.cr8);
  words.put_wide(CITCAT_STATE2_EFER, state.efer);
  for (unsigned n = 0; n < 4; ++n) words.put_wide(CITCAT_STATE2_DR(n), state.dr[n]);
  words.put_wide(CITCAT_STATE2_DR(4), state.dr[6]);
  words.put_wide(CITCAT_STATE2_DR(5), state.dr[7]);
  words.put_wide(CITCAT_STATE2_XCR0, facts.xcr0);
  words.put(CITCAT_STATE2_A20_MASK, a20_mask(state));
  words.put(CITCAT_STATE2_RAM_BYTES, ram_bytes);
  for (unsigned n = 0; n < 128; ++n) words.put(CITCAT_STATE2_FXSAVE + 4 * n, state.fx[n]);
  put_model(words, CITCAT_STATE2_CPUID_COUNT, with_bases(facts, wide));
  return words.take();
}

/// Leaves that answer by ECX too (Intel SDM vol. 2, CPUID).
bool has_subleaves(std::uint32_t leaf) {
  return leaf == 4 || leaf == 7 || leaf == 0xb || leaf == 0xd || leaf == 0x8000001d;
}

/// Leaves for hypervisors: no processor tells anything of itself there (Intel SDM vol. 2, CPUID).
/// To find one, firmware and systems ask for hundreds of them.
bool is_of_hypervisors(std::uint32_t leaf) { return leaf >> 28 == 4; }

}  // namespace

void ModelFacts::note_cpuid(std::uint32_t leaf, std::uint32_t subleaf, const CpuidAnswer& answer) {
  if (is_of_hypervisors(leaf)) return;
  cpuid[{leaf, has_subleaves(leaf) ? subleaf : 0}] = answer;
}

std::vector<std::uint32_t> state_block(const LoggedState& state, std::uint64_t ip,
                                       const std::optional<LongModeRegisters>& wide,
                                       const ModelFacts& facts, std::uint32_t ram_bytes) {
  return wide ? wide_block(state, ip, *wide, facts, ram_bytes)
              : narrow_block(state, ip, facts, ram_bytes);
}

}  // namespace citcat::monitor
