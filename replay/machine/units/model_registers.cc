#include "replay/machine/units/model_registers.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "events/machine/control_bits.h"
#include "replay/machine/replay_stopped.h"

namespace citcat {

namespace {

constexpr std::uint32_t kMsrTsc = 0x10;

constexpr std::uint32_t kExtendedLeaves = 0x80000000, kHypervisorLeaves = 4;

/// Leaves that answer by ECX too (SDM vol. 2, CPUID; APM vol. 3, appendix E).
bool has_subleaves(std::uint32_t leaf) {
  return leaf == 4 || leaf == 7 || leaf == 0xb || leaf == 0xd || leaf == 0x8000001d;
}

}  // namespace

std::optional<std::uint64_t> ModelRegisters::find_msr(std::uint32_t index) const {
  const auto it = std::lower_bound(msrs_.begin(), msrs_.end(), index,
                                   [](const Msr& m, std::uint32_t i) { return m.index < i; });
  if (it == msrs_.end() || it->index != index) return std::nullopt;
  return it->value;
}

void ModelRegisters::set_msr(std::uint32_t index, std::uint64_t value) {
  const auto it = std::lower_bound(msrs_.begin(), msrs_.end(), index,
                                   [](const Msr& m, std::uint32_t i) { return m.index < i; });
  if (it != msrs_.end() && it->index == index) {
    it->value = value;
  } else {
    msrs_.insert(it, Msr{index, value});
  }
}

bool ModelRegisters::is_of_amd() const {
  constexpr std::uint32_t kAuth = 0x68747541;  // of AuthenticAMD
  const CpuidLeaf* const leaf = cpuid_leaf(0);
  return leaf != nullptr && leaf->ebx == kAuth;
}

bool ModelRegisters::is_emulated() const {
  constexpr std::uint32_t kHypervisor = 1u << 31;
  const CpuidLeaf* const leaf = cpuid_leaf(1);
  return leaf != nullptr && (leaf->ecx & kHypervisor) != 0;
}

/// AMD's processors leave it (APM vol. 2, 4.5.3), up to the second generation of their 17h family,
/// which does not say so, and the next, which do (leaf 80000021h, EAX bit 6; Linux,
/// arch/x86/kernel/cpu/common.c, check_null_seg_clears_base()).
bool ModelRegisters::clears_base_of_null() const {
  if (!is_of_amd() || is_emulated()) return true;
  constexpr std::uint32_t kSaysSo = 1u << 6, kZen = 0x17, kSecondZen = 0x30;
  const CpuidLeaf* const newer = cpuid_leaf(0x80000021);
  if (newer != nullptr && (newer->eax & kSaysSo) != 0) return true;
  const CpuidLeaf* const signature = cpuid_leaf(1);
  if (signature == nullptr) return false;
  const std::uint32_t eax = signature->eax;
  const std::uint32_t family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
  const std::uint32_t model = (eax >> 4 & 0xf) | (eax >> 12 & 0xf0);
  return family > kZen + 1 || (family == kZen && model >= kSecondZen);
}

const CpuidLeaf* ModelRegisters::cpuid_leaf(std::uint32_t leaf, unsigned subleaf) const {
  for (const CpuidLeaf& l : cpuid_) {
    if (l.leaf == leaf && subleaf-- == 0) return &l;
  }
  return nullptr;
}

std::optional<bool> ModelRegisters::tells(const InstructionFeature& feature) const {
  const CpuidLeaf* const leaf = cpuid_leaf(feature.leaf, feature.subleaf);
  if (leaf != nullptr) return has_feature(feature, *leaf);
  // EAX of leaf 7 is the number of its last sub-leaf (SDM vol. 2, CPUID).
  constexpr std::uint32_t kFeatures = 7;
  const CpuidLeaf* const main = cpuid_leaf(feature.leaf);
  if (feature.leaf == kFeatures && main != nullptr && feature.subleaf > main->eax) return false;
  // EAX of the first leaf is the number of the last. A state that was dumped
  // while firmware had asked for little has little, and what it lacks the processor may have.
  const CpuidLeaf* const first = cpuid_leaf(feature.leaf & kExtendedLeaves);
  if (first != nullptr && feature.leaf > first->eax) return false;
  return std::nullopt;
}

/// What the recording has of RDMSR or WRMSR at this place. Throws #GP where a monitor reports each
/// that completes, and this one not: processors with long mode have few registers alike.
std::optional<InternalRead> ModelRegisters::read_or_fault(InternalRead::Op op) {
  const auto known = cpu_.environment.internal_read(op, cpu_.position);
  if (!known && cpu_.traits.has_long_mode && cpu_.environment.reports_each(op)) {
    throw CpuException{13, 0u, 0};
  }
  return known;
}

void ModelRegisters::read_internal(InternalRead::Op op) {
  const bool of_msr = op == InternalRead::Op::rdmsr;
  const std::optional<InternalRead> known =
      of_msr ? read_or_fault(op) : cpu_.environment.internal_read(op, cpu_.position);
  if (known) {
    cpu_.engine.set_gpr(kEax, known->eax);
    cpu_.engine.set_gpr(kEdx, known->edx);
    if (op == InternalRead::Op::rdtscp) cpu_.engine.set_gpr(kEcx, known->ecx);
    if (op == InternalRead::Op::rdmsr) {
      set_msr(cpu_.engine.gpr(kEcx), std::uint64_t{known->edx} << 32 | known->eax);
    }
    return;
  }
  if (op == InternalRead::Op::rdmsr && cpu_.engine.gpr(kEcx) != kMsrTsc) {
    if (const auto value = find_msr(cpu_.engine.gpr(kEcx))) {
      cpu_.engine.set_gpr(kEax, static_cast<std::uint32_t>(*value));
      cpu_.engine.set_gpr(kEdx, static_cast<std::uint32_t>(*value >> 32));
      return;
    }
  }
  refuse_without(op);
}

InternalRead ModelRegisters::random(InternalRead::Op op) const {
  const auto known = cpu_.environment.internal_read(op, cpu_.position);
  if (!known) refuse_without(op);
  return *known;
}

void ModelRegisters::refuse_without(InternalRead::Op op) const {
  char text[200];
  std::snprintf(text, sizeof text,
                "%s at EIP %08" PRIx64
                " needs a value that crosses no bus, and the recording has none left "
                "(import with --internal FILE)",
                internal_read_name(op), cpu_.ip());
  throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, internal_read_name(op), "nothing"};
}

void ModelRegisters::cpuid() {
  const std::uint32_t leaf = cpu_.engine.gpr(kEax), subleaf = cpu_.engine.gpr(kEcx);
  if (const auto known = cpu_.environment.internal_read(InternalRead::Op::cpuid, cpu_.position)) {
    learn(leaf, subleaf, *known);
    cpu_.engine.set_gpr(kEax, known->eax);
    cpu_.engine.set_gpr(kEbx, known->ebx);
    cpu_.engine.set_gpr(kEcx, known->ecx);
    cpu_.engine.set_gpr(kEdx, known->edx);
    return;
  }
  const CpuidLeaf* const answer = answer_to(leaf, subleaf);
  if (answer == nullptr) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "CPUID needs the answer of the captured processor to leaf %" PRIx32
                  "h, which neither the state nor the recording has (import with --internal FILE, "
                  "or with \"cpuid\" in --initial-state)",
                  leaf);
    throw ReplayStopped{cpu_.position, text, ~std::uint64_t{0}, "CPUID", "nothing"};
  }
  cpu_.engine.set_gpr(kEax, answer->eax);
  cpu_.engine.set_gpr(kEbx, answer->ebx);
  cpu_.engine.set_gpr(kEcx, answer->leaf == 1 ? with_osxsave(answer->ecx) : answer->ecx);
  cpu_.engine.set_gpr(kEdx, answer->edx);
}

/// What the state has of it. Beyond the last leaf it is the last basic one (SDM vol. 2, CPUID).
const CpuidLeaf* ModelRegisters::answer_to(std::uint32_t leaf, std::uint32_t subleaf) const {
  const CpuidLeaf* last_of_leaf = nullptr;
  const CpuidLeaf* last_basic = nullptr;
  for (const CpuidLeaf& l : cpuid_) {
    if (l.leaf < kExtendedLeaves) last_basic = &l;
    if (l.leaf == leaf) last_of_leaf = &l;
  }
  if (last_of_leaf != nullptr) {
    const CpuidLeaf* const asked = has_subleaves(leaf) ? cpuid_leaf(leaf, subleaf) : nullptr;
    return asked != nullptr ? asked : last_of_leaf;
  }
  const CpuidLeaf* const first = cpuid_leaf(leaf & kExtendedLeaves);
  return first != nullptr && leaf > first->eax ? last_basic : nullptr;
}

/// CPUID was executed, and the recording has its answer: from here on the processor is known for
/// what it says. A later answer counts: firmware turns features off.
void ModelRegisters::learn(std::uint32_t leaf, std::uint32_t subleaf, const InternalRead& answer) {
  if (leaf >> 28 == kHypervisorLeaves) return;
  const CpuidLeaf told{leaf, answer.eax, answer.ebx, answer.ecx, answer.edx};
  auto at =
      std::lower_bound(cpuid_.begin(), cpuid_.end(), leaf,
                       [](const CpuidLeaf& l, std::uint32_t number) { return l.leaf < number; });
  std::uint32_t before = has_subleaves(leaf) ? subleaf : 0;
  for (; before != 0 && at != cpuid_.end() && at->leaf == leaf; --before) ++at;
  if (before != 0) return;  // those are kept in their order, and one before it is missing
  if (at != cpuid_.end() && at->leaf == leaf) {
    *at = told;
  } else {
    cpuid_.insert(at, told);
  }
}

/// ECX of leaf 1, of which bit 27 shows CR4.OSXSAVE (SDM vol. 2, CPUID).
std::uint32_t ModelRegisters::with_osxsave(std::uint32_t ecx) const {
  if (!cpu_.traits.has_long_mode) return ecx;
  constexpr std::uint32_t kShown = 1u << 27;
  return (cpu_.engine.cr(4) & kCr4OsXsave) != 0 ? ecx | kShown : ecx & ~kShown;
}

void ModelRegisters::write() {
  const Engine& engine = cpu_.engine;
  read_or_fault(InternalRead::Op::wrmsr);
  set_msr(engine.gpr(kEcx), std::uint64_t{engine.gpr(kEdx)} << 32 | engine.gpr(kEax));
}

}  // namespace citcat
