// The state that is replayed: what the interrupt itself shows, and what is guessed.

#include <algorithm>
#include <array>

#include "events/cpu_traits.h"
#include "replay/infer/protected_search.h"
#include "replay/x86/descriptor.h"

namespace citcat {
namespace {

constexpr std::array<const char*, 8> kGeneral{"eax", "ecx", "edx", "ebx",
                                              "esp", "ebp", "esi", "edi"};
constexpr std::array<const char*, 6> kSegments{"es", "cs", "ss", "ds", "fs", "gs"};

/// A whole address space; code that may be read, or data that may be written.
Segment flat_segment(std::uint16_t selector, bool code) {
  constexpr std::uint16_t kData = 0xc093, kCode = 0xc09b;
  const auto level = static_cast<std::uint16_t>((selector & 3) << 5);
  return {selector, 0, 0xffffffff, static_cast<std::uint16_t>((code ? kCode : kData) | level),
          false};
}

}  // namespace

std::optional<PhysAddr> ProtectedRecovery::translate(LinearAddr linear) const {
  return pages_.translate(linear);
}

/// Sets `value` to the linear address of what lies at `at`, less `below`. False when no page is
/// known to lie there.
bool ProtectedRecovery::choose(PhysAddr at, std::uint32_t below, std::uint32_t& value,
                               const char* name) {
  const std::vector<LinearAddr> linear = pages_.linear_of(at);
  if (linear.empty()) return false;
  const auto walk = walked_.find(at.low32());
  const auto shown = std::find_if(linear.begin(), linear.end(), [&](LinearAddr a) {
    return walk != walked_.end() && a.page() == walk->second;
  });
  // Tables that are not known may map it again; of the stack pointer the run's values tell.
  const bool is_stack = below == 0 && linear.size() == 1;
  const bool certain = shown != linear.end() || is_stack;
  // Systems put what they map a second time above the memory that they map all of.
  value = (shown != linear.end() ? *shown : linear.front()).low32() - below;
  found_.push_back({name, value, certain ? RegisterSource::frame : RegisterSource::assumed,
                    recording_.interrupts.front().transaction});
  return true;
}

/// The tables and the stack that the interrupt used.
bool ProtectedRecovery::find_tables() {
  found_.clear();
  task_.reset();
  const std::uint32_t selector = entry_.handler_cs & 0xfff8u;
  if (!choose(entry_.gate, 8u * entry_.vector, idt_, "idtr.base")) return false;
  if (!choose(entry_.code_descriptor, selector, gdt_, "gdtr.base")) return false;
  if (!entry_.stack) {
    if (!choose(entry_.frame, 0, stack_, "esp")) return false;
    stack_ += entry_.frame_bytes;
    found_.back().value = stack_;
    return true;
  }
  // SDM vol. 3, figure 7-2: ESP0 is at 4, ESP1 at 12, ESP2 at 20.
  std::uint32_t task = 0;
  if (!choose(entry_.stack->in_task, 4 + 8 * entry_.level(), task, "tr.base")) return false;
  task_ = task;
  stack_ = entry_.stack->esp;
  found_.push_back(
      {"esp", stack_, RegisterSource::frame, recording_.interrupts.front().transaction});
  return true;
}

/// The segment that a selector of the global table names, as far as memory tells.
std::optional<Segment> ProtectedRecovery::descriptor(std::uint16_t selector) const {
  if ((selector & 4) != 0) return std::nullopt;
  const LinearAddr linear = linear32(gdt_, selector & 0xfff8u);
  const auto at = translate(linear);
  if (!at) return std::nullopt;
  const auto low = known_dword(recording_.image, *at);
  const auto high = known_dword(recording_.image, at->plus32(4));
  constexpr std::uint32_t kPresent = 1u << 15, kIsSegment = 1u << 12;
  if (!low || !high || (*high & kPresent) == 0 || (*high & kIsSegment) == 0) return std::nullopt;
  return segment_of_descriptor(selector, *low, *high);
}

Segment ProtectedRecovery::segment_of(const ProtectedUnknown& u) const {
  const auto selector = static_cast<std::uint16_t>(u.value);
  Segment s = flat_segment(selector, false);
  const bool null = (selector & 0xfffc) == 0;
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
  for (const std::uint32_t g : {kEax, kEcx, kEdx, kEbx, kEbp, kEsi, kEdi}) {
    unknown_.push_back({.name = kGeneral[g], .kind = Kind::general, .number = g});
  }
  for (const std::uint32_t s : {kEs, kDs, kFs, kGs}) {
    unknown_.push_back({.name = kSegments[s], .kind = Kind::segment, .number = s});
  }
  if (!entry_.stack) {
    unknown_.push_back(
        {.name = "ss", .kind = Kind::segment, .number = kSs, .value = stack_selector()});
  }
  if (!task_) unknown_.push_back({.name = "tr.base", .kind = Kind::task});
  if (cpu_traits(recording_.initial.model).has_sysenter) {
    const std::uint32_t cs = entry_.handler_cs & 0xfffcu;
    unknown_.push_back(
        {.name = "sysenter_cs", .kind = Kind::msr, .number = kSysenterCs, .value = cs});
    unknown_.push_back({.name = "sysenter_esp", .kind = Kind::msr, .number = kSysenterEsp});
    unknown_.push_back({.name = "sysenter_eip", .kind = Kind::msr, .number = kSysenterEip});
  }
}

void ProtectedRecovery::fill_state() {
  CpuState& s = recording_.initial;
  const CpuModel model = s.model;
  s = CpuState();
  s.model = model;
  const CpuTraits& traits = cpu_traits(model);
  // PE, MP, ET; NE, WP and AM, which the 386 has not: as operating systems set them (SDM vol. 3,
  // 2.5).
  s.cr0 = (traits.has_cr0_wp ? 0x50033u : 0x13u) | (space_.paging ? 1u << 31 : 0);
  s.cr3 = space_.cr3;
  // PSE; MCE and PGE, OSFXSR and OSXMMEXCPT where they exist.
  if (traits.has_cr4) s.cr4 = 0x10;
  if (traits.has_sysenter) s.cr4 = 0x6d0;
  s.gdtr = {gdt_, 0xffff};
  s.idtr = {idt_, 0x7ff};
  s.eip = entry_.eip;
  s.eflags = entry_.eflags;
  s.segment[kCs] = descriptor(entry_.cs).value_or(flat_segment(entry_.cs, true));
  s.gpr[kEsp] = stack_;
  constexpr std::uint16_t kBusyTask = 0x8b;
  s.tr = {0, task_.value_or(0), 0xffff, kBusyTask, false};
  s.ldtr = {0, 0, 0, 0, true};
  if (entry_.stack) {
    const std::uint16_t ss = entry_.stack->ss;
    s.segment[kSs] = descriptor(ss).value_or(flat_segment(ss, false));
  }
  for (const ProtectedUnknown& u : unknown_) {
    switch (u.kind) {
      case ProtectedUnknown::Kind::general:
        s.gpr[u.number] = u.value;
        break;
      case ProtectedUnknown::Kind::segment:
        s.segment[u.number] = segment_of(u);
        break;
      case ProtectedUnknown::Kind::task:
        s.tr.base = u.value;
        break;
      case ProtectedUnknown::Kind::msr:
        s.msrs.push_back({u.number, u.value});
        break;
    }
  }
  if (fx_ && fx_->whole) s.fx = fx_->image;
  if (fx_) std::copy_n(&fx_->image[kMxcsrMask], 4, &s.fx[kMxcsrMask]);
  s.ram_bytes = ram_bytes_;
}

}  // namespace citcat
