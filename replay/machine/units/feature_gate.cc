#include "replay/machine/units/feature_gate.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/model_registers.h"
#include "x86/flag_effects.h"
#include "x86/instruction_features.h"

namespace citcat {

/// A dump need not have the leaves of which they are.
void FeatureGate::take_limits() const {
  constexpr std::uint32_t kAddressLeaf = 0x80000008;
  constexpr std::uint8_t kGigabytePages = 26;
  const CpuidLeaf* const address = model_registers_.cpuid_leaf(kAddressLeaf);
  const CpuidLeaf* const extended = model_registers_.cpuid_leaf(kExtendedFeatureLeaf);
  const unsigned bits = address == nullptr ? 0 : address->eax & 0xff;
  cpu_.mmu.set_limits(bits == 0 ? PageTableWalker::kMostPhysicalBits : bits,
                      extended == nullptr || (extended->edx >> kGigabytePages & 1) != 0);
}

void FeatureGate::check_feature(const DecodedInstruction& info) const {
  const InstructionFeature* const feature = feature_of(info);
  if (feature == nullptr) return;
  const std::optional<bool> told = model_registers_.tells(*feature);
  const bool untold = !told && cpu_.traits.has_long_mode;
  // F3 is without effect on BSF and BSR of a processor that lacks the newer instruction.
  if (info.is(Operation::bsf) || info.is(Operation::bsr)) {
    if (untold && !scans_alike(info))
      refuse_untold(*feature, "which a processor without it takes for another");
    return;
  }
  if (untold && !feature->executed)
    refuse_untold(*feature, "which is not executed and undefined on a processor without it");
  if (!told.value_or(feature->executed)) throw CpuException{6, std::nullopt, 0};
  if (feature->executed) return;
  refuse(std::string("an instruction of ") + feature->name);
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
    for (std::uint32_t i = 0; i < a.size && value; ++i) {
      const LinearAddr at{cpu_.bits64() ? a.linear.value + i : a.linear.plus32(i).value};
      const auto page = cpu_.mmu.look_up(at, Access::read, cpu_.program(), Lookup::free);
      const auto byte =
          page ? cpu_.memory.defined_byte(page->frame.plus32(at.offset_in_page())) : std::nullopt;
      if (!byte) {
        value.reset();
      } else {
        *value |= std::uint64_t{*byte} << 8 * i;
      }
    }
  });
  return value;
}

/// Both give the number of the lowest 1 where there is one. Of 0 BSF leaves the destination alone,
/// and TZCNT gives the width (SDM vol. 2, BSF and TZCNT). ZF behind an odd number is 0 by BSF and 1
/// by TZCNT: both leave the same where code asks for no ZF before it has another value. LZCNT
/// counts from the other end than BSR.
bool FeatureGate::scans_alike(const DecodedInstruction& info) const {
  if (!info.is(Operation::bsf)) return false;
  const std::uint64_t source = scanned(info).value_or(0);
  if (source == 0) return false;
  int left = kMostLookedAt;
  return (source & 1) == 0 || !asks_for_zero_flag(cpu_.onward(cpu_.linear, info.length), left);
}

/// Whether the code at `at` asks for ZF before it gives it another value, as far as its next `left`
/// instructions tell. Compilers keep no flags across calls and returns, and what is behind an
/// indirect jump or a mode switch is not looked at.
bool FeatureGate::asks_for_zero_flag(LinearAddr at, int& left) const {
  while (left-- > 0) {
    std::array<std::uint8_t, kMaxInstructionBytes> bytes{};
    const std::size_t known = known_code(at, bytes);
    const DecodedInstruction next =
        decode_instruction({bytes.data(), known}, cpu_.code_mode(), cpu_.model);
    if (next.state != DecodeState::ok || next.row == nullptr) return false;
    if ((next.row->flags.read & kZf) != 0) return true;
    // A shift by CL, which may be 0, leaves the flags alone.
    if ((flag_effect_of(next, 0).written & kZf) != 0) return false;
    at = cpu_.onward(at, next.length);
    const LinearAddr target =
        cpu_.onward(at, static_cast<std::uint64_t>(std::int64_t{next.target_displacement}));
    if (next.kind == InstructionClass::jcc || next.kind == InstructionClass::loop) {
      if (asks_for_zero_flag(target, left)) return true;
    } else if (next.kind == InstructionClass::jump && !next.indirect) {
      at = target;
    } else if (next.control_flow) {
      return false;
    }
  }
  return false;
}

/// Puts what lies at `at` into `bytes`; how many of them are known.
std::size_t FeatureGate::known_code(LinearAddr at, std::span<std::uint8_t> bytes) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const LinearAddr here = cpu_.onward(at, i);
    const auto page = cpu_.mmu.look_up(here, Access::execute, cpu_.program(), Lookup::free);
    const auto byte =
        page ? cpu_.memory.defined_byte(page->frame.plus32(here.offset_in_page())) : std::nullopt;
    if (!byte) return i;
    bytes[i] = *byte;
  }
  return bytes.size();
}

/// Where no answer of CPUID tells whether the processor has it.
void FeatureGate::refuse_untold(const InstructionFeature& feature, const char* otherwise) const {
  char leaf[16];
  std::snprintf(leaf, sizeof leaf, "%" PRIx32 "h", feature.leaf);
  throw ReplayStopped{cpu_.position,
                      std::string("an instruction of ") + feature.name + ", " + otherwise +
                          ": leaf " + leaf +
                          " of CPUID tells, which neither the state nor the recording has (import "
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

/// What AMD's processors take otherwise than Intel's: near branches behind an operand-size prefix,
/// and SYSRET outside 64-bit mode.
void FeatureGate::check_vendor(const DecodedInstruction& info) const {
  constexpr std::uint8_t kOperandSize = 0x66;
  const bool defined = info.state == DecodeState::ok;
  bool branch = false;  // whose prefix the decoder has taken away
  for (unsigned i = 0; defined && info.bits64 && info.aliased && i < info.prefix_bytes; ++i) {
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
