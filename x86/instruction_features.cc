#include "x86/instruction_features.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace citcat {

namespace {

using Feature = InstructionFeature;
using enum InstructionFeature::Register;

constexpr std::uint32_t kExtended = kExtendedFeatureLeaf;

constexpr Feature kSse3{"SSE3", 1, ecx, 0, true}, kMonitor{"MONITOR", 1, ecx, 3, false},
    kSsse3{"SSSE3", 1, ecx, 9, true}, kPclmul{"PCLMULQDQ", 1, ecx, 1, true},
    kCx16{"CMPXCHG16B", 1, ecx, 13, true}, kSse41{"SSE4.1", 1, ecx, 19, true},
    kSse42{"SSE4.2", 1, ecx, 20, true}, kMovbe{"MOVBE", 1, ecx, 22, true},
    kPopcnt{"POPCNT", 1, ecx, 23, true}, kAes{"AES", 1, ecx, 25, true},
    kXsaveopt{"XSAVEOPT", kExtendedStateLeaf, eax, 0, true, 1},
    kXsaves{"XSAVES", kExtendedStateLeaf, eax, 3, true, 1}, kRdrand{"RDRAND", 1, ecx, 30, true},
    kVmx{"VMX", 1, ecx, 5, false}, kBmi2{"BMI2", 7, ebx, 8, true},
    kClflushopt{"CLFLUSHOPT", 7, ebx, 23, true}, kClwb{"CLWB", 7, ebx, 24, true},
    kInvpcid{"INVPCID", 7, ebx, 10, true}, kAvx512{"AVX-512", 7, ebx, 16, false},
    kRdseed{"RDSEED", 7, ebx, 18, true}, kAdx{"ADX", 7, ebx, 19, true},
    kSha{"SHA", 7, ebx, 29, false}, kWaitpkg{"WAITPKG", 7, ecx, 5, false},
    kRdpid{"RDPID", 7, ecx, 22, true},
    kLahf{"LAHF and SAHF in 64-bit mode", kExtended, ecx, 0, true},
    kSvm{"SVM", kExtended, ecx, 2, false}, kSse4a{"SSE4A", kExtended, ecx, 6, false},
    kXop{"XOP", kExtended, ecx, 11, false}, kRdtscp{"RDTSCP", kExtended, edx, 27, true},
    k3dNow{"3DNow!", kExtended, edx, 31, false};

const Feature* feature_of_38(const DecodedInstruction& info) {
  const std::uint8_t opcode = info.opcode;
  if (opcode <= 0x0b || (opcode >= 0x1c && opcode <= 0x1e)) return &kSsse3;
  if (opcode >= 0xdb && opcode <= 0xdf) return &kAes;
  if (info.is(Operation::crc32) || opcode == 0x37) return &kSse42;
  if (info.is(Operation::movbe)) return &kMovbe;
  if (opcode == 0xf6) return &kAdx;
  if (opcode == 0x82) return &kInvpcid;
  return &kSse41;
}

const Feature* feature_of_3a(const DecodedInstruction& info) {
  const std::uint8_t opcode = info.opcode;
  if (opcode == 0x0f) return &kSsse3;
  if (opcode == 0x44) return &kPclmul;
  if (opcode == 0xdf) return &kAes;
  return opcode >= 0x60 && opcode <= 0x63 ? &kSse42 : &kSse41;
}

const Feature* feature_of_vex(const DecodedInstruction& info) {
  switch (info.row->operation) {
    case Operation::andn:
    case Operation::bextr:
    case Operation::blsi:
    case Operation::blsmsk:
    case Operation::blsr:
      return &kFeatureBmi1;
    default:
      return &kBmi2;
  }
}

const Feature* feature_of_row(const DecodedInstruction& info) {
  if (info.opcode_map == 2) return feature_of_38(info);
  if (info.opcode_map == 3) return feature_of_3a(info);
  if (info.opcode_map > 3) return feature_of_vex(info);
  const bool f3 = info.mandatory_prefix == 0xf3;
  switch (info.row->operation) {
    case Operation::addsubpd:
    case Operation::addsubps:
    case Operation::haddpd:
    case Operation::haddps:
    case Operation::hsubpd:
    case Operation::hsubps:
    case Operation::lddqu:
    case Operation::movddup:
    case Operation::movshdup:
    case Operation::movsldup:
    case Operation::fisttp:
      return &kSse3;
    case Operation::monitor:
    case Operation::mwait:
      return &kMonitor;
    case Operation::popcnt:
      return &kPopcnt;
    case Operation::bsf:
    case Operation::tzcnt:
      return f3 ? &kFeatureBmi1 : nullptr;
    case Operation::bsr:
    case Operation::lzcnt:
      return f3 ? &kFeatureLzcnt : nullptr;
    case Operation::cmpxchg8b:
      return info.operand_bytes == 8 ? &kCx16 : nullptr;
    case Operation::rdtscp:
      return &kRdtscp;
    case Operation::rdfsbase:
    case Operation::rdgsbase:
    case Operation::wrfsbase:
    case Operation::wrgsbase:
      return &kFeatureFsGsBase;
    case Operation::stac:
    case Operation::clac:
      return &kFeatureSmap;
    case Operation::rdpid:
      return &kRdpid;
    case Operation::rdrand:
      return &kRdrand;
    case Operation::rdseed:
      return &kRdseed;
    case Operation::xsavec:
      return is_xsaves(info) ? &kXsaves : &kFeatureXsavec;
    case Operation::clflush:
      if (info.mandatory_prefix != 0x66) return nullptr;
      return (info.modrm >> 3 & 7) == 7 ? &kClflushopt : &kClwb;
    case Operation::xgetbv:
    case Operation::xsetbv:
    case Operation::xsave:
      return &kFeatureXsave;
    case Operation::xrstor:
      return is_xsaves(info) ? &kXsaves : &kFeatureXsave;
    case Operation::xsaveopt:
      return &kXsaveopt;
    case Operation::lahf:
    case Operation::sahf:
      return info.bits64 ? &kLahf : nullptr;
    default:
      return nullptr;
  }
}

/// The feature of an undefined opcode behind 0F 01, by ModRM.
const Feature* feature_of_0f01(std::uint8_t modrm) {
  if (modrm >= 0xc1 && modrm <= 0xc4) return &kVmx;
  return modrm >= 0xd8 && modrm <= 0xdf ? &kSvm : nullptr;
}

/// Behind 0F; `code` begins behind that, `prefix`: 66, F2 or F3 among the prefixes.
const Feature* feature_of_0f(std::span<const std::uint8_t> code, std::uint8_t prefix) {
  if (code.size() < 2) return nullptr;
  const std::uint8_t modrm = code[1];
  const unsigned reg = modrm >> 3 & 7u;
  const bool registers = modrm >= 0xc0;
  switch (code[0]) {
    case 0x01:
      return feature_of_0f01(modrm);
    case 0x0f:
      return &k3dNow;
    case 0x2b:
    case 0x78:
    case 0x79:
      return prefix == 0 ? &kVmx : &kSse4a;
    case 0x38:
      return modrm >= 0xc8 && modrm <= 0xcd ? &kSha : nullptr;
    case 0x3a:
      return modrm == 0xcc ? &kSha : nullptr;
    case 0xae:
      return registers && reg == 6 ? &kWaitpkg : nullptr;
    case 0xc7:
      return !registers && reg >= 6 ? &kVmx : nullptr;
    default:
      return nullptr;
  }
}

/// True for a VEX encoding of an integer instruction, which has no vector instruction beside it.
bool is_integer_of_vex(std::span<const std::uint8_t> code) {
  if (code.size() < 4 || code[0] != 0xc4 || (code[1] & 0x1f) != 2) return false;
  return code[3] == 0xf2 || code[3] == 0xf3 || (code[3] >= 0xf5 && code[3] <= 0xf7);
}

const Feature* feature_of_undefined(std::span<const std::uint8_t> bytes) {
  std::uint8_t prefix = 0;
  std::size_t at = 0;
  for (; at < bytes.size(); ++at) {
    const std::uint8_t b = bytes[at];
    constexpr std::array<std::uint8_t, 8> kOthers = {0x26, 0x2e, 0x36, 0x3e,
                                                     0x64, 0x65, 0x67, 0xf0};
    const bool selects = b == 0x66 || b == 0xf2 || b == 0xf3;
    const bool other = std::find(kOthers.begin(), kOthers.end(), b) != kOthers.end();
    if (selects) prefix = b;
    if (!selects && !other && (b & 0xf0) != 0x40) break;
  }
  const auto code = bytes.subspan(at);
  if (code.empty()) return nullptr;
  switch (code[0]) {
    case 0xc4:
    case 0xc5:
      return is_integer_of_vex(code) ? nullptr : &kFeatureAvx;
    case 0x62:
      return &kAvx512;
    case 0x8f:
      return &kXop;
    case 0x0f:
      return feature_of_0f(code.subspan(1), prefix);
    default:
      return nullptr;
  }
}

}  // namespace

const InstructionFeature* feature_of(const DecodedInstruction& info) {
  if (info.state == DecodeState::ok) return feature_of_row(info);
  return info.reason == InvalidReason::undefined_opcode ? feature_of_undefined(info.bytes)
                                                        : nullptr;
}

bool has_feature(const InstructionFeature& feature, const CpuidLeaf& leaf) {
  const std::array<std::uint32_t, 4> words = {leaf.eax, leaf.ebx, leaf.ecx, leaf.edx};
  return (words[static_cast<std::size_t>(feature.in)] >> feature.bit & 1) != 0;
}

}  // namespace citcat
