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
    kSse4a{"SSE4A", kExtended, ecx, 6, false}, kXop{"XOP", kExtended, ecx, 11, false},
    kRdtscp{"RDTSCP", kExtended, edx, 27, true}, k3dNow{"3DNow!", kExtended, edx, 31, false},
    kRtm{"RTM", 7, ebx, 11, false}, kGfni{"GFNI", 7, ecx, 8, false};

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

/// Prefixes that select an instruction, as a set.
enum : unsigned { pNone = 1, p66 = 2, pF2 = 4, pF3 = 8, pAny = 15 };
/// What the byte after the opcode is.
enum class Behind : std::uint8_t {
  within,     ///< between two values: ModRM, or the opcode of a third map
  registers,  ///< ModRM of registers, by its field reg
  memory,     ///< ModRM of memory, by its field reg
};

/// Opcodes after 0F without a row of their own, and what newer processors take them for.
struct Unexecuted {
  std::uint8_t opcode;
  Behind behind;
  std::uint8_t first, last;
  unsigned prefixes;
  Feature feature;
};

constexpr std::uint32_t kAmdLeaf = 0x80000008;

using enum Behind;
constexpr Unexecuted kUnexecuted[] = {
    {0x00, registers, 6, 6, pF2, {"LKGS", 7, eax, 18, false, 1}},
    {0x00, memory, 6, 6, pF2, {"LKGS", 7, eax, 18, false, 1}},
    {0x01, within, 0xc0, 0xc0, pNone, {"SGX", 7, ebx, 2, false}},
    {0x01, within, 0xc1, 0xc4, pAny, kVmx},
    {0x01, within, 0xc5, 0xc5, pNone, {"PCONFIG", 7, edx, 18, false}},
    {0x01, within, 0xc6, 0xc6, pNone, {"WRMSRNS", 7, eax, 19, false, 1}},
    {0x01, within, 0xc6, 0xc6, pF2 | pF3, {"RDMSRLIST and WRMSRLIST", 7, eax, 27, false, 1}},
    {0x01, within, 0xcf, 0xcf, pNone, {"SGX", 7, ebx, 2, false}},
    {0x01, within, 0xd5, 0xd6, pNone, kRtm},
    {0x01, within, 0xd7, 0xd7, pNone, {"SGX", 7, ebx, 2, false}},
    {0x01, within, 0xd8, 0xdf, pAny, kFeatureSvm},
    {0x01, within, 0xe8, 0xe8, pNone, {"SERIALIZE", 7, edx, 14, false}},
    {0x01, within, 0xe8, 0xe9, pF2, {"TSXLDTRK", 7, edx, 16, false}},
    {0x01, within, 0xfa, 0xfb, pNone, {"MONITORX", kExtended, ecx, 29, false}},
    {0x01, within, 0xfa, 0xfa, pF3, {"MCOMMIT", kAmdLeaf, ebx, 8, false}},
    {0x01, within, 0xfc, 0xfc, pNone, {"CLZERO", kAmdLeaf, ebx, 0, false}},
    {0x01, within, 0xfd, 0xfd, pNone, {"RDPRU", kAmdLeaf, ebx, 4, false}},
    {0x01, within, 0xfe, 0xff, pNone, {"INVLPGB", kAmdLeaf, ebx, 3, false}},
    {0x01, within, 0xfe, 0xff, pF2 | pF3, {"SEV-SNP", 0x8000001f, eax, 4, false}},
    {0x0e, within, 0, 0xff, pAny, k3dNow},
    {0x0f, within, 0, 0xff, pAny, k3dNow},
    {0x2b, within, 0, 0xff, pF2 | pF3, kSse4a},
    {0x38, within, 0x80, 0x81, p66, kVmx},
    {0x38, within, 0xc8, 0xcd, pNone, kSha},
    {0x38, within, 0xcf, 0xcf, p66, kGfni},
    {0x38, within, 0xf8, 0xf8, p66, {"MOVDIR64B", 7, ecx, 28, false}},
    {0x38, within, 0xf8, 0xf8, pF2 | pF3, {"ENQCMD", 7, ecx, 29, false}},
    {0x38, within, 0xf9, 0xf9, pNone, {"MOVDIRI", 7, ecx, 27, false}},
    {0x38, within, 0xfc, 0xfc, pAny, {"RAO-INT", 7, eax, 3, false, 1}},
    {0x3a, within, 0xcc, 0xcc, pNone, kSha},
    {0x3a, within, 0xce, 0xcf, p66, kGfni},
    {0x3a, within, 0xf0, 0xf0, pF3, {"HRESET", 7, eax, 22, false, 1}},
    {0x78, within, 0, 0xff, pNone, kVmx},
    {0x78, within, 0, 0xff, p66 | pF2 | pF3, kSse4a},
    {0x79, within, 0, 0xff, pNone, kVmx},
    {0x79, within, 0, 0xff, p66 | pF2 | pF3, kSse4a},
    {0xae, memory, 4, 4, pF3, {"PTWRITE", 0x14, ebx, 4, false}},
    {0xae, registers, 4, 4, pF3, {"PTWRITE", 0x14, ebx, 4, false}},
    {0xae, registers, 6, 6, p66 | pF2 | pF3, kWaitpkg},
    {0xc7, memory, 6, 7, pAny, kVmx},
};

unsigned as_set(std::uint8_t prefix) {
  if (prefix == 0) return pNone;
  return prefix == 0x66 ? p66 : prefix == 0xf2 ? pF2 : pF3;
}

/// After 0F; `code` begins after that, `prefix`: 66, F2 or F3 among the prefixes.
const Feature* feature_of_0f(std::span<const std::uint8_t> code, std::uint8_t prefix) {
  // FEMMS is all of two bytes.
  const std::uint8_t behind = code.size() < 2 ? 0 : code[1];
  for (const Unexecuted& row : kUnexecuted) {
    if (code.empty() || row.opcode != code[0] || (row.prefixes & as_set(prefix)) == 0) continue;
    const bool of_registers = behind >= 0xc0;
    if (row.behind != within && of_registers != (row.behind == registers)) continue;
    const std::uint8_t value = row.behind == within ? behind : behind >> 3 & 7;
    if (value >= row.first && value <= row.last) return &row.feature;
  }
  return nullptr;
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
    case 0xc6:
    case 0xc7:  // XABORT, XBEGIN
      return code.size() > 1 && code[1] == 0xf8 ? &kRtm : nullptr;
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
