#include "capture/import/dump_state.h"

#include <algorithm>
#include <array>

#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::uint32_t kWord = 4;

Segment read_segment(DumpWords& in, std::uint32_t offset, const std::string& name,
                     const Segment& fallback) {
  Segment s;
  s.selector = static_cast<std::uint16_t>(in.get(offset, name, fallback.selector));
  s.base = in.get(offset + CITCAT_SEGMENT_BASE, name + ".base", fallback.base);
  s.limit = in.get(offset + CITCAT_SEGMENT_LIMIT, name + ".limit", fallback.limit);
  const std::uint32_t attributes =
      in.get(offset + CITCAT_SEGMENT_ATTRIBUTES, name + ".attributes", fallback.attributes);
  s.attributes = static_cast<std::uint16_t>(attributes);
  s.unusable = (attributes & CITCAT_SEGMENT_UNUSABLE) != 0;
  return s;
}

TableRegister read_table(DumpWords& in, std::uint32_t offset, const std::string& name) {
  TableRegister table;
  table.base = in.get(offset, name + ".base");
  table.limit = static_cast<std::uint16_t>(in.get(offset + 4, name + ".limit", table.limit));
  return table;
}

void read_general(DumpWords& in, CpuState& s) {
  constexpr std::array kGpr{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
  for (std::uint32_t i = 0; i < kGpr.size(); ++i) {
    s.gpr[i] = in.get(CITCAT_STATE_GPR(i), kGpr[i]);
  }
  s.eip = in.get(CITCAT_STATE_EIP, "eip");
  s.eflags = in.get(CITCAT_STATE_EFLAGS, "eflags", s.eflags);
  constexpr std::array kSegments{"es", "cs", "ss", "ds", "fs", "gs"};
  for (std::uint32_t i = 0; i < kSegments.size(); ++i) {
    s.segment[i] = read_segment(in, CITCAT_STATE_SEGMENT(i), kSegments[i], s.segment[i]);
  }
}

void read_system(DumpWords& in, CpuState& s) {
  s.ldtr = read_segment(in, CITCAT_STATE_SEGMENT(6), "ldtr", s.ldtr);
  s.tr = read_segment(in, CITCAT_STATE_SEGMENT(7), "tr", s.tr);
  s.gdtr = read_table(in, CITCAT_STATE_GDTR_BASE, "gdtr");
  s.idtr = read_table(in, CITCAT_STATE_IDTR_BASE, "idtr");
  s.cr0 = in.get(CITCAT_STATE_CR0, "cr0", s.cr0);
  s.cr2 = in.get(CITCAT_STATE_CR2, "cr2");
  s.cr3 = in.get(CITCAT_STATE_CR3, "cr3");
  s.cr4 = in.get(CITCAT_STATE_CR4, "cr4");
  constexpr std::array<std::uint32_t, 6> kDebug{0, 1, 2, 3, 6, 7};
  for (std::uint32_t i = 0; i < kDebug.size(); ++i) {
    std::uint32_t& dr = s.dr[kDebug[i]];
    dr = in.get(CITCAT_STATE_DR(i), "dr" + std::to_string(kDebug[i]), dr);
  }
  s.a20_mask = in.get(CITCAT_STATE_A20_MASK, "a20_mask", s.a20_mask);
}

/// Where a version of the block has what is alike in both.
struct MachineOffsets {
  std::uint32_t activity, in_smm, ram_bytes, ignore_cr0_cd, tsc, fxsave;
};
constexpr MachineOffsets kMachine{CITCAT_STATE_ACTIVITY,  CITCAT_STATE_IN_SMM,
                                  CITCAT_STATE_RAM_BYTES, CITCAT_STATE_IGNORE_CR0_CD,
                                  CITCAT_STATE_TSC_LOW,   CITCAT_STATE_FXSAVE};
constexpr MachineOffsets kMachine64{CITCAT_STATE2_ACTIVITY,  CITCAT_STATE2_IN_SMM,
                                    CITCAT_STATE2_RAM_BYTES, CITCAT_STATE2_IGNORE_CR0_CD,
                                    CITCAT_STATE2_TSC_LOW,   CITCAT_STATE2_FXSAVE};

void read_machine(DumpWords& in, const MachineOffsets& at, CpuState& s,
                  std::vector<std::string>& warnings) {
  constexpr std::uint32_t kHalted = 1, kWaitsForStartup = 3;
  const std::uint32_t activity = in.get(at.activity, "activity");
  s.halted = activity == kHalted || activity == kWaitsForStartup;
  if (activity > kHalted && !s.halted) {
    warnings.push_back("state dump: activity state " + std::to_string(activity) +
                       " is neither running nor halted");
  }
  s.in_smm = in.get(at.in_smm, "in_smm") != 0;
  s.ram_bytes = in.get(at.ram_bytes, "ram_bytes");
  s.ignore_cr0_cd = in.get(at.ignore_cr0_cd, "ignore_cr0_cd") != 0;
  s.tsc = in.get(at.tsc, "tsc");
  s.tsc |= std::uint64_t{in.get(at.tsc + kWord, "tsc")} << 32;
  for (std::uint32_t i = 0; i < s.fx.size(); i += kWord) {
    const std::uint32_t fallback = s.fx[i] | std::uint32_t{s.fx[i + 1]} << 8 |
                                   std::uint32_t{s.fx[i + 2]} << 16 |
                                   std::uint32_t{s.fx[i + 3]} << 24;
    const std::uint32_t value = in.get(at.fxsave + i, "fx", fallback);
    for (std::uint32_t b = 0; b < kWord; ++b) {
      s.fx[i + b] = static_cast<std::uint8_t>(value >> (8 * b));
    }
  }
}

std::string hex_name(const char* prefix, std::uint32_t number) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = prefix;
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[number >> shift & 15];
  return text;
}

void read_cpuid(DumpWords& in, const DumpLayout& layout, std::uint32_t count, CpuState& s) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t at = layout.cpuid(i);
    CpuidLeaf leaf;
    leaf.leaf = in.get(at, "cpuid");
    const std::string name = hex_name("cpuid.", leaf.leaf);
    leaf.eax = in.get(at + 4, name);
    leaf.ebx = in.get(at + 8, name);
    leaf.ecx = in.get(at + 12, name);
    leaf.edx = in.get(at + 16, name);
    s.cpuid.push_back(leaf);
  }
  std::stable_sort(s.cpuid.begin(), s.cpuid.end(),
                   [](const auto& a, const auto& b) { return a.leaf < b.leaf; });
}

void read_msrs(DumpWords& in, std::uint32_t at, std::uint32_t count, CpuState& s) {
  for (std::uint32_t i = 0; i < count; ++i, at += CITCAT_MSR_BYTES) {
    Msr msr;
    msr.index = in.get(at, "msr");
    const std::string name = hex_name("msr.", msr.index);
    msr.value = in.get(at + 4, name);
    msr.value |= std::uint64_t{in.get(at + 8, name)} << 32;
    s.msrs.push_back(msr);
  }
  std::stable_sort(s.msrs.begin(), s.msrs.end(),
                   [](const auto& a, const auto& b) { return a.index < b.index; });
}

// ---- Version 2 ----------------------------------------------------------------------------------

/// A register of 64 bits into the place that CpuState has for its name.
void read_wide(DumpWords& in, std::uint32_t offset, const std::string& name, CpuState& s) {
  const std::uint64_t fallback = get_register(s, name).value_or(0);
  std::uint64_t value = in.get(offset, name, static_cast<std::uint32_t>(fallback));
  const auto high = static_cast<std::uint32_t>(fallback >> 32);
  value |= std::uint64_t{in.get(offset + kWord, name, high)} << 32;
  CITCAT_ASSERT(set_register(s, name, value));
}

/// Where registers of 64 bits are, as two words, and the parts of segments and tables that have
/// fewer. Offsets in bytes; those of segments and debug registers by number.
struct WideOffsets {
  std::uint32_t gpr, rip, rflags;
  std::uint32_t segment, segment_bytes, limit, attributes;
  std::uint32_t base, base_bytes;
  std::uint32_t gdtr_base, gdtr_limit, idtr_base, idtr_limit;
  std::uint32_t cr0, cr2, cr3, cr4, cr8, debug, a20_mask;
};
constexpr WideOffsets kVersion2{
    .gpr = CITCAT_STATE2_GPR(0),
    .rip = CITCAT_STATE2_RIP,
    .rflags = CITCAT_STATE2_RFLAGS,
    .segment = CITCAT_STATE2_SEGMENT(0),
    .segment_bytes = CITCAT_STATE2_SEGMENT(1) - CITCAT_STATE2_SEGMENT(0),
    .limit = CITCAT_SEGMENT2_LIMIT,
    .attributes = CITCAT_SEGMENT2_ATTRIBUTES,
    .base = CITCAT_STATE2_SEGMENT(0) + CITCAT_SEGMENT2_BASE,
    .base_bytes = CITCAT_STATE2_SEGMENT(1) - CITCAT_STATE2_SEGMENT(0),
    .gdtr_base = CITCAT_STATE2_GDTR_BASE,
    .gdtr_limit = CITCAT_STATE2_GDTR_BASE + 8,
    .idtr_base = CITCAT_STATE2_IDTR_BASE,
    .idtr_limit = CITCAT_STATE2_IDTR_BASE + 8,
    .cr0 = CITCAT_STATE2_CR0,
    .cr2 = CITCAT_STATE2_CR2,
    .cr3 = CITCAT_STATE2_CR3,
    .cr4 = CITCAT_STATE2_CR4,
    .cr8 = CITCAT_STATE2_CR8,
    .debug = CITCAT_STATE2_DR(0),
    .a20_mask = CITCAT_STATE2_A20_MASK};
/// Offsets of the 64-bit block beside a block of version 1, and of what only version 1 has.
constexpr WideOffsets kBesideVersion1{
    .gpr = CITCAT_STATE64_GPR(0),
    .rip = CITCAT_STATE64_RIP,
    .rflags = CITCAT_STATE64_RFLAGS,
    .segment = CITCAT_STATE_SEGMENT(0),
    .segment_bytes = CITCAT_STATE_SEGMENT(1) - CITCAT_STATE_SEGMENT(0),
    .limit = CITCAT_SEGMENT_LIMIT,
    .attributes = CITCAT_SEGMENT_ATTRIBUTES,
    .base = CITCAT_STATE64_BASE(0),
    .base_bytes = CITCAT_STATE64_BASE(1) - CITCAT_STATE64_BASE(0),
    .gdtr_base = CITCAT_STATE64_GDTR_BASE,
    .gdtr_limit = CITCAT_STATE_GDTR_LIMIT,
    .idtr_base = CITCAT_STATE64_IDTR_BASE,
    .idtr_limit = CITCAT_STATE_IDTR_LIMIT,
    .cr0 = CITCAT_STATE64_CR0,
    .cr2 = CITCAT_STATE64_CR2,
    .cr3 = CITCAT_STATE64_CR3,
    .cr4 = CITCAT_STATE64_CR4,
    .cr8 = CITCAT_STATE64_CR8,
    .debug = CITCAT_STATE64_DR(0),
    .a20_mask = CITCAT_STATE_A20_MASK};
constexpr std::uint32_t kWideBytes = 8;

void read_general_64(DumpWords& in, const WideOffsets& at, CpuState& s) {
  constexpr std::array kGpr{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                            "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  for (std::uint32_t i = 0; i < kGpr.size(); ++i) {
    read_wide(in, at.gpr + kWideBytes * i, kGpr[i], s);
  }
  read_wide(in, at.rip, "rip", s);
  read_wide(in, at.rflags, "rflags", s);
}

void read_segment_64(DumpWords& in, const WideOffsets& at, std::uint32_t number,
                     const std::string& name, Segment& segment, CpuState& s) {
  const std::uint32_t offset = at.segment + at.segment_bytes * number;
  segment.selector = static_cast<std::uint16_t>(in.get(offset, name, segment.selector));
  read_wide(in, at.base + at.base_bytes * number, name + ".base", s);
  segment.limit = in.get(offset + at.limit, name + ".limit", segment.limit);
  const std::uint32_t attributes =
      in.get(offset + at.attributes, name + ".attributes", segment.attributes);
  segment.attributes = static_cast<std::uint16_t>(attributes);
  segment.unusable = (attributes & CITCAT_SEGMENT_UNUSABLE) != 0;
}

void read_segments_64(DumpWords& in, const WideOffsets& at, CpuState& s) {
  constexpr std::array kSegments{"es", "cs", "ss", "ds", "fs", "gs"};
  for (std::uint32_t i = 0; i < kSegments.size(); ++i) {
    read_segment_64(in, at, i, kSegments[i], s.segment[i], s);
  }
  read_segment_64(in, at, 6, "ldtr", s.ldtr, s);
  read_segment_64(in, at, 7, "tr", s.tr, s);
  read_wide(in, at.gdtr_base, "gdtr.base", s);
  s.gdtr.limit = static_cast<std::uint16_t>(in.get(at.gdtr_limit, "gdtr.limit", s.gdtr.limit));
  read_wide(in, at.idtr_base, "idtr.base", s);
  s.idtr.limit = static_cast<std::uint16_t>(in.get(at.idtr_limit, "idtr.limit", s.idtr.limit));
}

void read_system_64(DumpWords& in, const WideOffsets& at, CpuState& s) {
  read_segments_64(in, at, s);
  read_wide(in, at.cr0, "cr0", s);
  read_wide(in, at.cr2, "cr2", s);
  read_wide(in, at.cr3, "cr3", s);
  read_wide(in, at.cr4, "cr4", s);
  read_wide(in, at.cr8, "cr8", s);
  constexpr std::array kDebug{"dr0", "dr1", "dr2", "dr3", "dr6", "dr7"};
  for (std::uint32_t i = 0; i < kDebug.size(); ++i) {
    read_wide(in, at.debug + kWideBytes * i, kDebug[i], s);
  }
  s.a20_mask = in.get(at.a20_mask, "a20_mask", s.a20_mask);
}

/// The driver executes FXSAVE without REX.W: the upper halves of the x87 pointers are not there,
/// and selectors are in their place (SDM vol. 1, 10.5.1).
void widen_fx(CpuState& s, std::vector<std::string>& warnings) {
  for (const std::size_t at : {std::size_t{12}, std::size_t{20}}) {
    std::fill_n(s.fx.begin() + static_cast<std::ptrdiff_t>(at), 4, std::uint8_t{0});
  }
  warnings.emplace_back("state dump: the x87 pointers have their lower halves alone");
}

/// EFER is among the MSRs of such a dump, XCR0 nowhere.
void settle_efer(CpuState& s) {
  constexpr std::uint32_t kEfer = 0xc0000080;  // AMD64 manual vol. 2, 3.1.7
  const auto found =
      std::find_if(s.msrs.begin(), s.msrs.end(), [](const Msr& msr) { return msr.index == kEfer; });
  if (found != s.msrs.end()) {
    s.long_mode->efer = found->value;
  } else {
    s.unknown.emplace_back("efer");
  }
  s.unknown.emplace_back("xcr0");
}

void read_registers(DumpWords& in, DumpForm form, CpuState& s, std::vector<std::string>& warnings) {
  if (form == DumpForm::narrow) {
    read_general(in, s);
    read_system(in, s);
    read_machine(in, kMachine, s, warnings);
    return;
  }
  const bool is_one = form == DumpForm::wide;
  s.long_mode.emplace();
  read_general_64(in, is_one ? kVersion2 : kBesideVersion1, s);
  read_system_64(in, is_one ? kVersion2 : kBesideVersion1, s);
  if (is_one) {
    read_wide(in, CITCAT_STATE2_EFER, "efer", s);
    read_wide(in, CITCAT_STATE2_XCR0, "xcr0", s);
  }
  read_machine(in, is_one ? kMachine64 : kMachine, s, warnings);
}

}  // namespace

DumpLayout dump_layout(std::uint32_t version) {
  if (version == CITCAT_STATE2_VERSION) return {CITCAT_STATE2_VERSION, CITCAT_STATE2_CPUID_COUNT};
  return {CITCAT_STATE_VERSION, CITCAT_STATE_CPUID_COUNT};
}

std::uint32_t DumpWords::get(std::uint32_t offset, const std::string& name,
                             std::uint32_t fallback) {
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; i < kWord; ++i) {
    const auto byte = written_.byte(base_.plus32(offset + i));
    if (!byte) {
      if (std::find(missing_.begin(), missing_.end(), name) == missing_.end()) {
        missing_.push_back(name);
      }
      return fallback;
    }
    value |= std::uint32_t{*byte} << (8 * i);
  }
  return value;
}

CpuModel cpu_model_of(const std::vector<CpuidLeaf>& leaves) {
  for (const CpuidLeaf& leaf : leaves) {
    if (leaf.leaf != 1) continue;
    // Intel SDM vol. 2, CPUID: family in bits 8-11; 15 (and AMD's use of it) extends P6.
    switch (leaf.eax >> 8 & 15) {
      case 3:
        return CpuModel::i386;
      case 4:
        return CpuModel::i486;
      case 5:
        return CpuModel::pentium;
      default:
        return CpuModel::p6;
    }
  }
  return CpuModel::unknown;
}

CpuState read_dump(DumpWords& in, const DumpLayout& layout, DumpForm form, DumpCounts counts,
                   std::optional<std::uint32_t> end, std::vector<std::string>& warnings) {
  CpuState s;
  read_registers(in, form, s, warnings);
  in.get(layout.cpuid_count, "cpuid");
  if (end) in.get(*end, "end");
  read_cpuid(in, layout, counts.leaves, s);
  if (end) {
    in.get(layout.msr_count(counts.leaves), "msr");
    read_msrs(in, layout.msr_count(counts.leaves) + kWord, counts.msrs, s);
  }
  s.model = s.long_mode ? CpuModel::x86_64 : cpu_model_of(s.cpuid);
  s.unknown = in.take_missing();
  if (form == DumpForm::narrow_and_wide) {
    widen_fx(s, warnings);
    settle_efer(s);
  }
  s.unknown.emplace_back("smbase");  // no word of the block holds it
  return s;
}

}  // namespace citcat
