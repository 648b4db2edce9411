// The state that is replayed: what the interrupt itself shows, and what is guessed.

#include <algorithm>
#include <array>

#include "events/machine/control_bits.h"
#include "events/machine/cpu_traits.h"
#include "replay/infer/registers/protected_search.h"
#include "replay/machine/cpu_context.h"
#include "x86/descriptor.h"

namespace citcat {
namespace {

constexpr std::array<const char*, 8> kGeneralNames{"eax", "ecx", "edx", "ebx",
                                                   "esp", "ebp", "esi", "edi"};
constexpr std::array<const char*, 16> kWideGeneral{"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                                   "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                                   "r12", "r13", "r14", "r15"};
constexpr std::array<const char*, 6> kSegmentNames{"es", "cs", "ss", "ds", "fs", "gs"};

constexpr std::uint16_t kFlatData = 0xc093, kFlatCode = 0xc09b, kFlatLongCode = 0xa09b;
/// In a segment's attributes: code of 64 bits.
constexpr std::uint16_t kLong = 1u << 13;
/// What SYSCALL clears of RFLAGS, as Linux has it since 5.13: all but RF, VM, VIF and VIP that a
/// program can set.
constexpr std::uint64_t kClearedBySystemCall = 0x257fd5;

/// A whole address space.
Segment flat_segment(std::uint16_t selector, std::uint16_t attributes) {
  const auto level = static_cast<std::uint16_t>((selector & 3) << 5);
  return {selector, 0, 0xffffffff, static_cast<std::uint16_t>(attributes | level), false};
}

}  // namespace

/// Registers of 32-bit processors have 32 bits.
std::uint64_t ProtectedRecovery::cut(std::uint64_t value) const {
  return entry_.long_mode ? value : value & 0xffffffff;
}

/// In long mode those that are mapped in the most address spaces: what interrupts need is there in
/// all, the tables that user programs run with among them.
std::vector<LinearAddr> ProtectedRecovery::addresses_of(PhysAddr at) const {
  std::vector<LinearAddr> linear = pages_.linear_of(at);
  if (!entry_.long_mode) return linear;
  const auto read = [this](PhysAddr a) { return known_dword(recording_.image, a); };
  std::map<LinearAddr, std::ptrdiff_t> shares;
  std::ptrdiff_t most = 0;
  for (const LinearAddr a : linear) {
    shares[a] = std::count_if(spaces_.begin(), spaces_.end(), [&](const AddressSpace& space) {
      return PageMap::translate(tables_, space.cr3, a, read) == at;
    });
    most = std::max(most, shares[a]);
  }
  std::erase_if(linear, [&](LinearAddr a) { return shares[a] != most; });
  return linear;
}

/// Where page tables are isolated a program's run agrees with the kernel's, too.
bool ProtectedRecovery::may_be_another_space() const {
  return entry_.long_mode && spaces_.size() > 1;
}

/// Sets `value` to the linear address of what lies at `at`, less `below`. False when no page is
/// known to lie there.
bool ProtectedRecovery::choose(PhysAddr at, std::uint32_t below, std::uint64_t& value,
                               const char* name) {
  const std::uint64_t interrupt = recording_.interrupts.front().transaction;
  if (const auto given = given_.value(name)) {
    value = *given;
    return true;
  }
  const std::vector<LinearAddr> linear = addresses_of(at);
  if (linear.empty()) return false;
  const auto walk = walked_.find(at.value);
  const auto shown = std::find_if(linear.begin(), linear.end(), [&](LinearAddr a) {
    return walk != walked_.end() && a.page() == walk->second;
  });
  // Tables that are not known may map it again; of the stack pointer the run's values tell.
  const bool is_stack = below == 0 && linear.size() == 1;
  const bool certain = !may_be_another_space() && (shown != linear.end() || is_stack);
  // Systems put what they map a second time above the memory that they map all of.
  value = cut((shown != linear.end() ? *shown : linear.front()).value - below);
  found_.push_back(
      {name, value, certain ? RegisterSource::frame : RegisterSource::assumed, interrupt});
  return true;
}

/// The tables and the stack that the interrupt used.
bool ProtectedRecovery::find_tables() {
  found_.clear();
  task_.reset();
  const std::uint32_t selector = entry_.handler_cs & 0xfff8u;
  if (!choose(entry_.gate, entry_.gate_bytes() * entry_.vector, idt_, "idtr.base")) return false;
  if (!choose(entry_.code_descriptor, selector, gdt_, "gdtr.base")) return false;
  if (!entry_.stack) {
    if (!choose(entry_.frame, 0, stack_, "esp")) return false;
    stack_ += entry_.frame_bytes;
    found_.back().value = stack_;
    return true;
  }
  std::uint64_t task = 0;
  if (entry_.task_stack) {
    if (!choose(entry_.task_stack->at, entry_.task_stack->offset, task, "tr.base")) return false;
    task_ = task;
  }
  stack_ = entry_.stack->sp;
  found_.push_back({entry_.long_mode ? "rsp" : "esp", stack_, RegisterSource::frame,
                    recording_.interrupts.front().transaction});
  return true;
}

/// The segment that a selector of the global table names, as far as memory tells.
std::optional<Segment> ProtectedRecovery::descriptor(std::uint16_t selector) const {
  if ((selector & 4) != 0) return std::nullopt;
  const auto at = pages_.translate(LinearAddr{cut(gdt_ + (selector & 0xfff8u))});
  if (!at) return std::nullopt;
  const auto low = known_dword(recording_.image, *at);
  const auto high = known_dword(recording_.image, at->plus32(4));
  constexpr std::uint32_t kPresent = 1u << 15, kIsSegment = 1u << 12;
  if (!low || !high || (*high & kPresent) == 0 || (*high & kIsSegment) == 0) return std::nullopt;
  return segment_of_descriptor(selector, *low, *high);
}

Segment ProtectedRecovery::segment_of(const ProtectedUnknown& u) const {
  const auto selector = static_cast<std::uint16_t>(u.value);
  Segment s = flat_segment(selector, kFlatData);
  const bool null = (selector & 0xfffc) == 0;
  // In long mode a null selector serves as well, and is what systems load.
  if (null && entry_.long_mode) return {selector, 0, 0, 0, true};
  if (u.has_base) {
    s.base = u.base;
  } else if (const auto known = descriptor(selector); known && !null) {
    s = *known;
  } else if (null && u.source == RegisterSource::saved && u.number != kSs) {
    s = {selector, 0, 0, 0, true};
  }
  return s;
}

/// SS of the handler's own level: a flat, writable segment of the table if one is known.
std::uint16_t ProtectedRecovery::stack_selector() const {
  const std::uint32_t level = entry_.level();
  constexpr std::uint16_t kDataOfLevel = 0x93;
  for (std::uint32_t selector = 8; selector < kPageSize; selector += 8) {
    const auto s = descriptor(static_cast<std::uint16_t>(selector | level));
    if (s && s->base == 0 && (s->attributes & 0xff) == (kDataOfLevel | level << 5)) {
      return s->selector;
    }
  }
  return static_cast<std::uint16_t>(level);
}

void ProtectedRecovery::prepare_unknowns() {
  unknown_.clear();
  fx_.reset();
  using Kind = ProtectedUnknown::Kind;
  const bool wide = entry_.long_mode;
  const std::uint32_t general = wide ? 16 : 8;
  for (std::uint32_t g = 0; g < general; ++g) {
    const char* const name = wide ? kWideGeneral[g] : kGeneralNames[g];
    if (g != kEsp) unknown_.push_back({.name = name, .kind = Kind::general, .number = g});
  }
  for (const std::uint32_t s : {kEs, kDs, kFs, kGs}) {
    unknown_.push_back({.name = kSegmentNames[s], .kind = Kind::segment, .number = s});
  }
  if (!entry_.stack) {
    unknown_.push_back(
        {.name = "ss", .kind = Kind::segment, .number = kSs, .value = stack_selector()});
  }
  if (!task_) unknown_.push_back({.name = "tr.base", .kind = Kind::task});
  const auto add_msr = [this](const char* name, std::uint32_t number, std::uint64_t value = 0) {
    unknown_.push_back({.name = name, .kind = Kind::msr, .number = number, .value = value});
  };
  const std::uint32_t cs = entry_.handler_cs & 0xfffcu;
  if (cpu_traits(recording_.initial.model).has_sysenter) {
    add_msr("sysenter_cs", kSysenterCs, cs);
    add_msr("sysenter_esp", kSysenterEsp);
    add_msr("sysenter_eip", kSysenterEip);
  }
  if (wide) {
    unknown_.push_back({.name = "fs.base", .kind = Kind::base, .number = kFs});
    unknown_.push_back({.name = "gs.base", .kind = Kind::base, .number = kGs});
    add_msr("star", kStar, system_call_selectors());
    add_msr("lstar", kLongTarget);
    add_msr("fmask", kSyscallMask, kClearedBySystemCall);
    add_msr("kernel_gs_base", kKernelGsBase);
  }
  std::erase_if(unknown_, [this](const ProtectedUnknown& u) {
    return u.kind == Kind::msr ? given_.has_msr(u.number) : given_.has(u.name);
  });
}

/// STAR: SYSCALL loads the handler's CS; SYSRET the user's code segment of 64 bits, which is 16
/// above what STAR has, after the one of 32 bits and that for data (SDM vol. 2, SYSRET).
std::uint64_t ProtectedRecovery::system_call_selectors() const {
  const std::uint64_t entered = entry_.handler_cs & 0xfffcu;
  const auto star = [entered](std::uint64_t user) { return (user - 16) << 48 | entered << 32; };
  constexpr std::uint16_t kUserCode = 0xf8;
  for (std::uint32_t selector = 16 | 3; selector < kPageSize; selector += 8) {
    const auto s = descriptor(static_cast<std::uint16_t>(selector));
    if (s && (s->attributes & kLong) != 0 && (s->attributes & kUserCode) == kUserCode) {
      return star(selector);
    }
  }
  return entered << 32;
}

/// SS, as the frame has it. In long mode it may be null.
Segment ProtectedRecovery::pushed_stack_segment() const {
  const std::uint16_t ss = entry_.stack->ss;
  if (entry_.long_mode && (ss & 0xfffc) == 0) return {ss, 0, 0, 0, true};
  return descriptor(ss).value_or(flat_segment(ss, kFlatData));
}

void ProtectedRecovery::fill_unknown(CpuState& s, const ProtectedUnknown& u) const {
  switch (u.kind) {
    case ProtectedUnknown::Kind::general:
      set_register(s, u.name, u.value);
      break;
    case ProtectedUnknown::Kind::segment:
      s.segment[u.number] = segment_of(u);
      break;
    case ProtectedUnknown::Kind::base:
    case ProtectedUnknown::Kind::task:
      set_register(s, u.name, u.value);
      break;
    case ProtectedUnknown::Kind::msr:
      s.msrs.push_back({u.number, u.value});
      break;
  }
}

/// What systems set.
void ProtectedRecovery::fill_system_state(CpuState& s) const {
  const CpuTraits& traits = cpu_traits(s.model);
  // PE, MP, ET; NE, WP and AM, which the 386 has not: as operating systems set them (SDM vol. 3,
  // 2.5).
  s.cr0 = (traits.has_cr0_wp ? 0x50033u : 0x13u) | (space_.paging ? 1u << 31 : 0);
  // PSE; MCE and PGE, OSFXSR and OSXMMEXCPT where they exist.
  if (traits.has_cr4) s.cr4 = 0x10;
  if (traits.has_sysenter) s.cr4 = 0x6d0;
  s.idtr.limit = 0x7ff;
  if (!entry_.long_mode) return;
  // PAE too; SCE, LME, LMA and NXE.
  s.cr4 |= 0x20;
  s.long_mode.emplace();
  s.long_mode->efer = 0xd01;
  s.idtr.limit = 0xfff;
  if (!uses_xsave_) return;
  s.cr4 |= static_cast<std::uint32_t>(kCr4OsXsave);
  s.long_mode->xcr0 = 3;  // x87 and SSE: what there is without AVX
}

void ProtectedRecovery::fill_state() {
  CpuState& s = recording_.initial;
  const CpuModel model = s.model;
  s = CpuState();
  s.model = model;
  fill_system_state(s);
  const std::uint64_t cr3 = space_.cr3;
  s.cr3 = static_cast<std::uint32_t>(cr3);
  if (s.long_mode) s.long_mode->cr3_high = static_cast<std::uint32_t>(cr3 >> 32);
  s.gdtr.limit = 0xffff;
  const auto set = [&s, this](const char* narrow, const char* wide, std::uint64_t value) {
    set_register(s, entry_.long_mode ? wide : narrow, value);
  };
  set("gdtr.base", "gdtr.base", gdt_);
  set("idtr.base", "idtr.base", idt_);
  set("eip", "rip", entry_.ip);
  set("eflags", "rflags", entry_.flags);
  set("esp", "rsp", stack_);
  const std::uint16_t code = entry_.long_mode ? kFlatLongCode : kFlatCode;
  s.segment[kCs] = descriptor(entry_.cs).value_or(flat_segment(entry_.cs, code));
  constexpr std::uint16_t kBusyTask = 0x8b;
  s.tr = {0, 0, 0xffff, kBusyTask, false};
  set("tr.base", "tr.base", task_.value_or(0));
  s.ldtr = {0, 0, 0, 0, true};
  if (entry_.stack) s.segment[kSs] = pushed_stack_segment();
  for (const ProtectedUnknown& u : unknown_) fill_unknown(s, u);
  if (fx_ && fx_->whole) s.fx = fx_->image;
  if (fx_) std::copy_n(&fx_->image[kMxcsrMask], 4, &s.fx[kMxcsrMask]);
  for (const auto& [at, byte] : learnt_) s.fx[at] = byte.value;
  for (std::size_t i = 0; i < kFxBytes; ++i) {
    if (is_other_[i]) s.fx[i] ^= static_cast<std::uint8_t>(kOtherValue);
  }
  s.ram_bytes = ram_bytes_;
  given_.fill(s);
}

}  // namespace citcat
