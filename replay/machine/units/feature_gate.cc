#include "replay/machine/units/feature_gate.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/known_bytes.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/zero_flag_search.h"
#include "x86/instruction_features.h"

namespace citcat {

/// A dump need not have the leaves of which they are.
void FeatureGate::take_limits() const {
  constexpr std::uint32_t kAddressLeaf = 0x80000008;
  constexpr std::uint8_t kGigabytePages = 26;
  const CpuidLeaf* const address = model_registers_.cpuid_leaf(kAddressLeaf);
  const CpuidLeaf* const extended = model_registers_.cpuid_leaf(kExtendedFeatureLeaf);
  const unsigned bits = address == nullptr ? 0 : address->eax & 0xff;
  PageTableWalker::Limits limits;
  if (bits != 0) limits.physical_bits = bits;
  limits.gigabyte_pages = extended == nullptr || (extended->edx >> kGigabytePages & 1) != 0;
  limits.is_emulated = model_registers_.is_emulated();
  cpu_.mmu.set_limits(limits);
}

void FeatureGate::check_feature(const DecodedInstruction& info) const {
  const InstructionFeature* const feature = feature_of(info);
  if (feature == nullptr) return;
  const std::optional<bool> told = model_registers_.tells(*feature);
  const bool untold = !told && cpu_.traits.has_long_mode;
  // F3 is without effect on BSF and BSR of a processor that lacks the newer instruction.
  if (info.is(Operation::bsf) || info.is(Operation::bsr)) {
    if (!told && may_count_zeros() && !scans_alike(info))
      refuse_untold(*feature, "which a processor without it takes for another");
    return;
  }
  if (untold && !feature->executed)
    refuse_untold(*feature, "which is not executed and undefined on a processor without it");
  if (!told.value_or(feature->executed)) throw CpuException{6, std::nullopt, 0};
  if (feature->executed) return;
  const bool is_svm = std::string_view(feature->name) == kFeatureSvm.name;
  if (is_svm && !has_guests()) throw CpuException{6, std::nullopt, 0};
  refuse(std::string("an instruction of ") + feature->name);
}

/// Whether EFER.SVME is set, without which SVM's instructions are #UD. So is VMMCALL outside a
/// guest (AMD APM vol. 3, VMRUN and VMMCALL).
bool FeatureGate::has_guests() const {
  constexpr std::uint64_t kSvme = 1u << 12;
  return (cpu_.engine.efer() & kSvme) != 0;
}

std::optional<std::uint64_t> FeatureGate::scanned(const DecodedInstruction& info) const {
  const std::uint64_t mask = info.operand_bytes == 8
                                 ? ~std::uint64_t{0}
                                 : (std::uint64_t{1} << 8 * info.operand_bytes) - 1;
  if (info.register_form) {
    return cpu_.engine.gprs()[(info.modrm & 7) | info.rex_bit(kRexB)] & mask;
  }
  const std::array<std::uint64_t, 6> bases = cpu_.bases();
  std::optional<std::uint64_t> value = 0;
  for_each_access(info, cpu_.engine.gprs(), bases.data(), cpu_.stack32(), [&](const DataAccess& a) {
    std::array<std::uint8_t, 8> bytes{};
    const std::size_t known = known_bytes(cpu_, a.linear, Access::read, {bytes.data(), a.size});
    if (known < a.size) value.reset();
    for (std::size_t i = 0; value && i < a.size; ++i) *value |= std::uint64_t{bytes[i]} << 8 * i;
  });
  return value;
}

/// Both give the number of the lowest 1 where there is one. Of 0 BSF leaves the destination alone,
/// and TZCNT gives the width (SDM vol. 2, BSF and TZCNT). ZF after an odd number is 0 by BSF and 1
/// by TZCNT: both leave the same where code asks for no ZF before it has another value. LZCNT
/// counts from the other end than BSR.
bool FeatureGate::scans_alike(const DecodedInstruction& info) const {
  if (!info.is(Operation::bsf)) return false;
  const std::uint64_t source = scanned(info).value_or(0);
  if (source == 0) return false;
  return (source & 1) == 0 || !ZeroFlagSearch(cpu_).may_ask_behind(info);
}

/// Where no answer of CPUID says whether the processor has it.
void FeatureGate::refuse_untold(const InstructionFeature& feature, const char* otherwise) const {
  char leaf[16];
  std::snprintf(leaf, sizeof leaf, "%" PRIx32 "h", feature.leaf);
  throw ReplayStopped{
      cpu_.position,
      std::string("an instruction of ") + feature.name + ", " + otherwise + ": leaf " + leaf +
          " of CPUID decides, and neither the state nor the recording has it (import "
          "with \"cpuid\" in --initial-state, or with --internal FILE)",
      kNoTransaction, "CPUID", "nothing"};
}

void FeatureGate::check_refused(const DecodedInstruction& info) const {
  const InstructionFeature* const feature = feature_of(info);
  if (feature == nullptr || !model_registers_.tells(*feature).value_or(false)) return;
  refuse(std::string("an instruction of ") + feature->name);
}

void FeatureGate::refuse(const std::string& what) const {
  throw ReplayStopped{
      cpu_.position,
      what + ", which is not executed (docs/long-mode.md says which processor to record)"};
}

/// What AMD's processors take differently from Intel's: near branches after an operand-size prefix,
/// and SYSRET outside 64-bit mode.
void FeatureGate::check_vendor(const DecodedInstruction& info) const {
  constexpr std::uint8_t kOperandSize = 0x66;
  const bool defined = info.state == DecodeState::ok;
  const bool transfers = defined && info.bits64 && info.control_flow;
  bool branch = false;  // whose prefix the decoder has taken away
  for (unsigned i = 0; transfers && info.aliased && i < info.prefix_bytes; ++i) {
    branch |= info.bytes[i] == kOperandSize && info.canonical[i] != kOperandSize;
  }
  const bool call = !defined && !cpu_.bits64() && info.bytes[0] == 0x0f && info.bytes[1] == 0x07;
  if (!(branch || call) || !model_registers_.is_of_amd()) return;
  refuse(branch ? "a near branch of 16 bits in 64-bit mode of an AMD processor"
                : "SYSRET of an AMD processor outside 64-bit mode");
}

/// What CR4.UMIP keeps from programs (SDM vol. 3, 2.5).
void FeatureGate::check_umip(const DecodedInstruction& info) const {
  if (info.row == nullptr) return;
  switch (info.row->operation) {
    case Operation::sgdt:
    case Operation::sidt:
    case Operation::sldt:
    case Operation::str:
    case Operation::smsw:
      throw CpuException{13, 0u, 0};
    default:
      return;
  }
}

/// Prefixes of ES, CS, SS and DS are without effect in 64-bit mode; the engine adds the base that
/// is left from another mode.
void FeatureGate::check_segments(const DecodedInstruction& info) const {
  constexpr std::array<std::pair<std::uint8_t, SegmentRegister>, 4> kIgnored = {
      {{0x26, kEs}, {0x2e, kCs}, {0x36, kSs}, {0x3e, kDs}}};
  for (unsigned i = 0; i < info.prefix_bytes; ++i) {
    for (const auto& [byte, segment] : kIgnored) {
      if (info.bytes[i] != byte || cpu_.engine.wide().segment_base(segment) == 0) continue;
      refuse("a segment prefix in 64-bit mode where the segment has a base");
    }
  }
}

}  // namespace citcat
