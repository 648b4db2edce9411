#include "replay/machine/units/model_registers.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "replay/machine/replay_stopped.h"

namespace citcat {

namespace {

constexpr std::uint32_t kMsrTsc = 0x10;

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

const CpuidLeaf* ModelRegisters::cpuid_leaf(std::uint32_t leaf, unsigned subleaf) const {
  for (const CpuidLeaf& l : cpuid_) {
    if (l.leaf == leaf && subleaf-- == 0) return &l;
  }
  return nullptr;
}

bool ModelRegisters::has(const InstructionFeature& feature) const {
  const CpuidLeaf* const leaf = cpuid_leaf(feature.leaf, feature.subleaf);
  if (leaf != nullptr) return has_feature(feature, *leaf);
  return cpuid_leaf(0) == nullptr && feature.executed;
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
  if (const auto known = cpu_.environment.internal_read(InternalRead::Op::cpuid, cpu_.position)) {
    cpu_.engine.set_gpr(kEax, known->eax);
    cpu_.engine.set_gpr(kEbx, known->ebx);
    cpu_.engine.set_gpr(kEcx, known->ecx);
    cpu_.engine.set_gpr(kEdx, known->edx);
    return;
  }
  const std::uint32_t leaf = cpu_.engine.gpr(kEax);
  const CpuidLeaf* answer = nullptr;
  for (const CpuidLeaf& l : cpuid_) {
    if (l.leaf == leaf) answer = &l;
  }
  if (answer == nullptr && !cpuid_.empty()) {
    // SDM vol. 2, CPUID: beyond the highest leaf the data of the highest basic leaf is returned.
    for (const CpuidLeaf& l : cpuid_) {
      if (l.leaf < 0x80000000) answer = &l;
    }
  }
  if (answer == nullptr) {
    throw ReplayStopped{cpu_.position,
                        "CPUID needs the answers of the captured processor, which neither the "
                        "state dump nor the recording has (import with --internal FILE)",
                        ~std::uint64_t{0}, "CPUID", "nothing"};
  }
  cpu_.engine.set_gpr(kEax, answer->eax);
  cpu_.engine.set_gpr(kEbx, answer->ebx);
  cpu_.engine.set_gpr(kEcx, answer->leaf == 1 ? with_osxsave(answer->ecx) : answer->ecx);
  cpu_.engine.set_gpr(kEdx, answer->edx);
}

/// ECX of leaf 1, of which bit 27 shows CR4.OSXSAVE (SDM vol. 2, CPUID).
std::uint32_t ModelRegisters::with_osxsave(std::uint32_t ecx) const {
  if (!cpu_.traits.has_long_mode) return ecx;
  constexpr std::uint32_t kShown = 1u << 27;
  return (cpu_.engine.cr(4) & CpuContext::kCr4OsXsave) != 0 ? ecx | kShown : ecx & ~kShown;
}

void ModelRegisters::write() {
  const Engine& engine = cpu_.engine;
  read_or_fault(InternalRead::Op::wrmsr);
  set_msr(engine.gpr(kEcx), std::uint64_t{engine.gpr(kEdx)} << 32 | engine.gpr(kEax));
}

}  // namespace citcat
