#pragma once
// Which instructions a processor with long mode has only where CPUID says so (Intel SDM vol. 2,
// CPUID; AMD64 Architecture Programmer's Manual vol. 3, appendix D), and which of them are executed
// here. The instruction sets up to SSE2 come with long mode.

#include <cstdint>

#include "x86/decode/decoded_instruction.h"

namespace citcat {

/// A set of instructions, and the bit of CPUID that announces it.
struct InstructionFeature {
  enum class Register : std::uint8_t { eax, ebx, ecx, edx };
  const char* name;
  std::uint32_t leaf;
  Register in;
  std::uint8_t bit;
  bool executed;  ///< by engine and machine
  std::uint8_t subleaf = 0;
};

// Those that more than single instructions are asked for.
inline constexpr std::uint32_t kExtendedStateLeaf = 0xd, kExtendedFeatureLeaf = 0x80000001;
inline constexpr InstructionFeature kFeatureXsave{"XSAVE", 1, InstructionFeature::Register::ecx, 26,
                                                  true},
    kFeatureFsGsBase{"FSGSBASE", 7, InstructionFeature::Register::ebx, 0, true},
    kFeatureSmap{"SMAP (STAC, CLAC)", 7, InstructionFeature::Register::ebx, 20, true},
    kFeatureSvm{"SVM", kExtendedFeatureLeaf, InstructionFeature::Register::ecx, 2, false},
    kFeatureBmi1{"BMI1 (TZCNT)", 7, InstructionFeature::Register::ebx, 3, true},
    kFeatureLzcnt{"LZCNT", kExtendedFeatureLeaf, InstructionFeature::Register::ecx, 5, true},
    kFeatureAvx{"AVX", 1, InstructionFeature::Register::ecx, 28, false},
    kFeatureXsavec{"XSAVEC", kExtendedStateLeaf, InstructionFeature::Register::eax, 1, true, 1},
    kFeatureXgetbv1{"XGETBV of the components in use",
                    kExtendedStateLeaf,
                    InstructionFeature::Register::eax,
                    2,
                    false,
                    1};

/// The set that the instruction is in; null for what every processor with long mode has, or what is
/// in no set that is known here. `info` may be an undefined opcode, whose bytes say what newer
/// processors take it for. Of BSF and BSR after F3, which these take for TZCNT and LZCNT, that.
const InstructionFeature* feature_of(const DecodedInstruction& info);

/// XSAVES and XRSTORS, which are XSAVEC and XRSTOR of the supervisor.
inline bool is_xsaves(const DecodedInstruction& info) {
  constexpr std::uint8_t kOpcode = 0xc7;
  const unsigned reg = info.modrm >> 3 & 7u;
  return info.opcode == kOpcode && (reg == 3 || reg == 5);
}

/// What an answer of CPUID says about the feature.
bool has_feature(const InstructionFeature& feature, const CpuidLeaf& leaf);

}  // namespace citcat
