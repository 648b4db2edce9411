#include "replay/machine/units/control_registers.h"

#include <array>

#include "events/machine/control_bits.h"
#include "formats/io/error.h"
#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/model_registers.h"
#include "x86/instruction_features.h"

namespace citcat {

namespace {

constexpr std::uint64_t kCr3Reserved = 0xfff0000000000000, kCr3Context = 0xfff,
                        kCr3Keeps = std::uint64_t{1} << 63;

/// A bit of CR4 that not every processor with long mode has (SDM vol. 3, 2.5).
struct Feature {
  unsigned bit;
  const char* name;
  InstructionFeature announced;  ///< that the processor has it, and whether it is executed
};
using enum InstructionFeature::Register;
constexpr std::array<Feature, 12> kFeatures = {
    {{11, "UMIP", {"UMIP", 7, ecx, 2, true}},
     {12, "LA57 (five levels of page tables)", {"LA57", 7, ecx, 16, false}},
     {13, "VMXE (virtual machines)", {"VMX", 1, ecx, 5, false}},
     {14, "SMXE", {"SMX", 1, ecx, 6, false}},
     {16, "FSGSBASE", kFeatureFsGsBase},
     {17, "PCIDE (process-context identifiers)", {"PCID", 1, ecx, 17, true}},
     {18, "OSXSAVE", kFeatureXsave},
     {20, "SMEP", {"SMEP", 7, ebx, 7, true}},
     {21, "SMAP", kFeatureSmap},
     {22, "PKE (protection keys)", {"PKU", 7, ecx, 3, false}},
     {23, "CET", {"CET", 7, ecx, 7, false}},
     {24, "PKS", {"PKS", 7, ecx, 31, false}}}};

/// VME to OSXMMEXCPT, which all have, and what is executed of the rest.
constexpr std::uint64_t kCr4Executed = [] {
  std::uint64_t bits = 0x7ff;
  for (const Feature& f : kFeatures) {
    if (f.announced.executed) bits |= std::uint64_t{1} << f.bit;
  }
  return bits;
}();

std::string names_of(std::uint64_t cr4) {
  std::string names;
  for (const Feature& f : kFeatures) {
    if ((cr4 >> f.bit & 1) == 0) continue;
    names += names.empty() ? "" : ", ";
    names += f.name;
  }
  return names.empty() ? "a reserved bit" : names;
}

}  // namespace

void ControlRegisters::refuse(const std::string& what) const {
  throw ReplayStopped{cpu_.position, what + ", which is not executed (docs/long-mode.md)"};
}

void ControlRegisters::take_loaded() {
  const Engine& engine = cpu_.engine;
  const std::uint64_t cr4 = engine.wide().cr(4), efer = engine.efer();
  const bool pages = (engine.wide().cr(0) & kCr0Pg) != 0, enabled = (efer & kEferLme) != 0;
  if ((pages && enabled) != ((efer & kEferLma) != 0)) {
    throw UsageError(
        "the recording begins with a value of EFER.LMA that contradicts CR0.PG and EFER.LME");
  }
  if ((cr4 & ~kCr4Executed) == 0) return;
  throw UsageError("the recording begins with CR4." + names_of(cr4) +
                   " set, which is not executed (docs/long-mode.md)");
}

void ControlRegisters::read() {
  cpu_.require_ring0();
  const unsigned number = flight_.info->reg_field;
  const std::uint64_t value =
      number == 8 ? cpu_.cr8 : cpu_.engine.wide().cr(static_cast<int>(number));
  cpu_.engine.wide().set_gpr(flight_.info->rm_field,
                             cpu_.bits64() ? value : static_cast<std::uint32_t>(value));
}

void ControlRegisters::write() {
  cpu_.require_ring0();
  std::uint64_t value = cpu_.engine.wide().gpr(flight_.info->rm_field);
  if (!cpu_.bits64()) value = static_cast<std::uint32_t>(value);
  switch (flight_.info->reg_field) {
    case 0:
      write_cr0(value);
      break;
    case 2:
      cpu_.engine.wide().set_cr(2, value);
      break;
    case 3:
      write_cr3(value);
      break;
    case 4:
      write_cr4(value);
      break;
    default:  // 8
      if (value > 15) throw CpuException{13, 0u, 0};
      cpu_.cr8 = value;
      break;
  }
  cpu_.engine.sync_mode();
  cpu_.engine.flush_tlb();
}

void ControlRegisters::write_cr0(std::uint64_t value) {
  Engine& engine = cpu_.engine;
  const std::uint64_t before = engine.wide().cr(0);
  const CpuException refused{13, 0u, 0};
  const bool pages = (value & kCr0Pg) != 0, paged = (before & kCr0Pg) != 0;
  if (value >> 32 != 0 || (pages && (value & kCr0Pe) == 0) ||
      ((value & kCr0Nw) != 0 && (value & kCr0Cd) == 0)) {
    throw refused;
  }
  const std::uint64_t efer = engine.efer();
  constexpr std::uint32_t kLong = 1u << 21;
  if (pages && !paged && (efer & kEferLme) != 0) {
    const bool wide_code = (engine.segment_flags(kCs) & kLong) != 0;
    if ((engine.wide().cr(4) & kCr4Pae) == 0 || wide_code) throw refused;
    engine.set_efer(efer | kEferLma);
  } else if (!pages && paged && (efer & kEferLma) != 0) {
    const bool contexts = (engine.wide().cr(4) & kCr4Pcide) != 0;
    if (cpu_.bits64() || contexts) throw refused;
    engine.set_efer(efer & ~kEferLma);
  }
  engine.wide().set_cr(0, value | kCr0Et);
}

void ControlRegisters::write_cr3(std::uint64_t value) {
  const bool contexts = (cpu_.engine.wide().cr(4) & kCr4Pcide) != 0;
  flight_.keeps_context = contexts && (value & kCr3Keeps) != 0;
  if (flight_.keeps_context) value &= ~kCr3Keeps;
  if ((value & kCr3Reserved) != 0) throw CpuException{13, 0u, 0};
  cpu_.engine.wide().set_cr(3, value);
}

void ControlRegisters::write_cr4(std::uint64_t value) {
  const CpuException refused{13, 0u, 0};
  const bool leaves = (cpu_.engine.efer() & kEferLma) != 0 && (value & kCr4Pae) == 0;
  if (leaves) throw refused;
  for (const Feature& f : kFeatures) {
    if ((value >> f.bit & 1) != 0 && !model_registers_.may_have(f.announced)) throw refused;
  }
  // SDM vol. 3, 4.10.1.
  const bool begins = (value & ~cpu_.engine.wide().cr(4) & kCr4Pcide) != 0;
  const bool may_begin =
      (cpu_.engine.efer() & kEferLma) != 0 && (cpu_.engine.wide().cr(3) & kCr3Context) == 0;
  if (begins && !may_begin) throw refused;
  if ((value & ~kCr4Executed) != 0) refuse("MOV to CR4 sets " + names_of(value & ~kCr4Executed));
  cpu_.engine.wide().set_cr(4, value);
}

void ControlRegisters::write_efer(std::uint64_t value) {
  Engine& engine = cpu_.engine;
  const std::uint64_t before = engine.efer();
  if ((value & ~(kEferSce | kEferLme | kEferLma | kEferNxe)) != 0) {
    // AMD's processors have more.
    if (model_registers_.cpuid_leaf(0) != nullptr && !model_registers_.is_of_amd()) {
      throw CpuException{13, 0u, 0};
    }
    refuse("WRMSR of EFER sets other bits than SCE, LME and NXE");
  }
  const bool paged = (engine.wide().cr(0) & kCr0Pg) != 0;
  if (paged && ((value ^ before) & kEferLme) != 0) throw CpuException{13, 0u, 0};
  engine.set_efer((value & ~kEferLma) | (before & kEferLma));
  engine.sync_mode();
  engine.flush_tlb();
  cpu_.mmu.control_changed(false);
}

}  // namespace citcat
