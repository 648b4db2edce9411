#include "replay/x86/opcode_support.h"

#include <algorithm>

#include "replay/x86/opcode_set.h"

namespace citcat {
namespace {

// Opcodes after 0F that came with each processor; groups whose members came at different times are
// looked at in the functions below. Sources: 80386 Programmer's Reference Manual, appendix A; i486
// Programmer's Reference Manual, appendix A; Pentium Family User's Manual vol. 3, appendix A.
// RSM (AA) is that of the 386SL and 386EX (Intel386 EX User's Manual, chapter 7); on the others no
// SMI comes before it, and it is #UD so.
constexpr OpcodeSet kOn386 = {0x02,         0x03,         0x06,        {0x20, 0x24}, 0x26,
                              {0x80, 0x9f}, 0xa0,         0xa1,        {0xa3, 0xa5}, {0xa8, 0xad},
                              0xaf,         {0xb2, 0xb7}, {0xbb, 0xbf}};
// INVD, WBINVD, CPUID, CMPXCHG, XADD, BSWAP.
constexpr OpcodeSet kSince486 = {0x08, 0x09, 0xa2, 0xb0, 0xb1, 0xc0, 0xc1, {0xc8, 0xcf}};
// WRMSR, RDTSC, RDMSR.
constexpr OpcodeSet kSincePentium = {{0x30, 0x32}};
// MMX, without a mandatory prefix.
constexpr OpcodeSet kMmx = {{0x60, 0x6b}, 0x6e, 0x6f, {0x71, 0x77}, 0x7e, 0x7f, {0xd1, 0xd3}, 0xd5,
                            0xd8,         0xd9, 0xdb, {0xdc, 0xdd}, 0xdf, 0xe1, 0xe2,         0xe5,
                            0xe8,         0xe9, 0xeb, {0xec, 0xed}, 0xef, 0xf1, {0xf2, 0xf3}, 0xf5,
                            0xf8,         0xf9, 0xfa, 0xfc,         0xfd, 0xfe};
// SYSCALL and SYSRET are not on 32-bit Intel parts.
constexpr OpcodeSet kOnNone = {0x05, 0x07};
// MOV to and from test registers: 386 and 486 only.
constexpr OpcodeSet kTestRegisters = {0x24, 0x26};

/// Members of groups 6, 7 and 8 that the 386 has.
bool is_386_group_member(unsigned opcode, unsigned reg) {
  if (opcode == 0x00) return reg <= 5;
  if (opcode == 0x01) return reg <= 4 || reg == 6;
  return opcode == 0xba && reg >= 4;
}

bool is_on_386(unsigned opcode, unsigned reg) {
  return kOn386.has(opcode) || is_386_group_member(opcode, reg);
}

bool is_on_486(unsigned opcode, unsigned reg) {
  const bool invlpg = opcode == 0x01 && reg == 7;
  return is_on_386(opcode, reg) || kSince486.has(opcode) || invlpg;
}

bool is_on_pentium(const DecodedInstruction& info) {
  const unsigned opcode = info.opcode;
  const bool cmpxchg8b = opcode == 0xc7 && info.reg_field == 1;
  if (kTestRegisters.has(opcode)) return false;
  return is_on_486(opcode, info.reg_field) || kSincePentium.has(opcode) || cmpxchg8b ||
         (info.mandatory_prefix == 0 && kMmx.has(opcode));
}

bool is_two_byte_opcode_on(const DecodedInstruction& info, CpuModel model) {
  const unsigned opcode = info.opcode;
  const unsigned reg = info.reg_field;
  const InstructionSet instructions = cpu_traits(model).instructions;
  if (info.opcode_map > 1) return instructions == InstructionSet::p6;
  if (kOnNone.has(opcode)) return false;
  switch (instructions) {
    case InstructionSet::i286:
      return opcode == 0x02 || opcode == 0x03 || opcode == 0x06 ||
             (opcode <= 0x01 && is_386_group_member(opcode, reg));
    case InstructionSet::i386:
      return is_on_386(opcode, reg);
    case InstructionSet::i486:
      return is_on_486(opcode, reg);
    case InstructionSet::pentium:
      return is_on_pentium(info);
    default:
      return !kTestRegisters.has(opcode);
  }
}

/// One-byte opcodes that Zydis decodes and some processor does not have.
bool is_one_byte_opcode_on(const DecodedInstruction& info, CpuModel model) {
  const unsigned reg = info.reg_field;
  const unsigned last_segment = cpu_traits(model).sixteen_bit ? kDs : kGs;
  if (!cpu_traits(model).has_invalid_opcodes) return true;
  switch (info.opcode) {
    case 0x8c:
      return reg <= last_segment;
    case 0x8e:
      return reg != kCs && reg <= last_segment;
    case 0x8f:
    case 0xc6:
    case 0xc7:
      return reg == 0;
    default:
      return true;
  }
}

}  // namespace

bool is_on_processor(const DecodedInstruction& info, CpuModel model) {
  return info.opcode_map == 0 ? is_one_byte_opcode_on(info, model)
                              : is_two_byte_opcode_on(info, model);
}

bool is_lockable(const DecodedInstruction& info) {
  // BTS, BTR, BTC, CMPXCHG, XADD after 0F.
  constexpr OpcodeSet kTwoByte = {0xab, 0xb3, 0xbb, 0xb0, 0xb1, 0xc0, 0xc1};
  if (!info.has_modrm || info.register_form || info.opcode_map > 1) return false;
  const unsigned reg = info.reg_field;
  if (info.opcode_map == 1) {
    return kTwoByte.has(info.opcode) || (info.opcode == 0xba && reg >= 5) ||
           (info.opcode == 0xc7 && reg == 1);
  }
  switch (info.opcode) {
    case 0x80:
    case 0x81:
    case 0x83:
      return reg != 7;
    case 0x86:
    case 0x87:
      return true;
    case 0xf6:
    case 0xf7:
      return reg == 2 || reg == 3;
    case 0xfe:
    case 0xff:
      return reg <= 1;
    default:
      return info.opcode < 0x32 && (info.opcode & 7) <= 1;  // ADD .. XOR, memory destination
  }
}

std::size_t prefixes_of_locked_bit_test(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kLock = 0xf0;
  constexpr OpcodeSet kPrefixes = {0x26, 0x2e, 0x36, 0x3e, {0x64, 0x67}, kLock, 0xf2, 0xf3};
  constexpr OpcodeSet kOfRegister = {0xa3, 0xab, 0xb3, 0xbb};
  const auto opcode =
      std::find_if(bytes.begin(), bytes.end(), [&](std::uint8_t b) { return !kPrefixes.has(b); });
  if (bytes.end() - opcode < 3 || opcode[0] != 0x0f) return 0;
  const bool group8 = opcode[1] == 0xba && (opcode[2] & 0x20) != 0;
  const bool of_register = opcode[2] >= 0xc0;
  if (!of_register || (!group8 && !kOfRegister.has(opcode[1]))) return 0;
  if (std::find(bytes.begin(), opcode, kLock) == opcode) return 0;
  return static_cast<std::size_t>(opcode - bytes.begin());
}

}  // namespace citcat
