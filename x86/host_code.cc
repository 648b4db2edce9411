#include "x86/host_code.h"

#include <sys/mman.h>

#include <algorithm>

#include "formats/io/error.h"

#ifndef __x86_64__
#error "host_code.cc generates x86-64 code"
#endif

namespace citcat {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;

bool has_immediate_byte(const DecodedInstruction& info) {
  const std::uint8_t opcode = info.opcode;
  if (info.opcode_map != 1) return info.opcode_map == 3;
  return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6);
}

/// The REX prefix of a form whose general register is replaced by RAX, and its memory operand by
/// [rdi]; 0 where it needs none.
std::uint8_t kept_rex(const DecodedInstruction& info, GprPlace place) {
  unsigned rex = info.rex & kRexW;
  if (place != GprPlace::reg_written) rex |= info.rex & kRexR;
  const bool in_rm = place == GprPlace::rm_read || place == GprPlace::rm_written;
  if (info.register_form && !in_rm) rex |= info.rex & kRexB;
  return rex == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(0x40 | rex);
}

}  // namespace

GprPlace gpr_place(const DecodedInstruction& info) {
  if (info.opcode_map != 1) return GprPlace::none;
  const bool scalar = info.mandatory_prefix == 0xf2 || info.mandatory_prefix == 0xf3;
  switch (info.opcode) {
    case 0x2a:
      return scalar && info.register_form ? GprPlace::rm_read : GprPlace::none;
    case 0x2c:
    case 0x2d:
      return scalar ? GprPlace::reg_written : GprPlace::none;
    case 0x50:
    case 0xc5:
    case 0xd7:
      return GprPlace::reg_written;
    case 0x6e:
    case 0xc4:
      return info.register_form ? GprPlace::rm_read : GprPlace::none;
    case 0x7e:
      return info.register_form && !scalar ? GprPlace::rm_written : GprPlace::none;
    default:
      return GprPlace::none;
  }
}

std::vector<std::uint8_t> vector_code(const DecodedInstruction& info, GprPlace place) {
  std::vector<std::uint8_t> code;
  if (info.mandatory_prefix != 0) code.push_back(info.mandatory_prefix);
  if (const std::uint8_t rex = kept_rex(info, place)) code.push_back(rex);
  code.push_back(0x0f);
  if (info.opcode_map != 1) code.push_back(info.opcode_map == 2 ? 0x38 : 0x3a);
  code.push_back(info.opcode);
  if (info.has_modrm) {
    std::uint8_t modrm = info.modrm;
    if (!info.register_form) modrm = static_cast<std::uint8_t>((modrm & 0x38) | kModRmRdi);
    if (place == GprPlace::reg_written) modrm = static_cast<std::uint8_t>(modrm & 0xc7);
    if (place == GprPlace::rm_read || place == GprPlace::rm_written) {
      modrm = static_cast<std::uint8_t>(modrm & 0xf8);
    }
    code.push_back(modrm);
  }
  if (has_immediate_byte(info)) code.push_back(static_cast<std::uint8_t>(info.immediate));
  return code;
}

bool host_has(const DecodedInstruction& info) {
  const std::uint8_t opcode = info.opcode;
  const bool second_map = info.opcode_map == 2;
  if (second_map ? opcode >= 0xdb : opcode == 0xdf) return __builtin_cpu_supports("aes") != 0;
  if (!second_map && opcode == 0x44) return __builtin_cpu_supports("pclmul") != 0;
  const bool first =
      second_map ? opcode <= 0x0b || (opcode >= 0x1c && opcode <= 0x1e) : opcode == 0x0f;
  return (first ? __builtin_cpu_supports("ssse3") : __builtin_cpu_supports("sse4.1")) != 0;
}

HostCode::~HostCode() {
  for (std::uint8_t* block : blocks_) munmap(block, kBlockBytes);
}

const void* HostCode::add(std::initializer_list<std::span<const std::uint8_t>> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  if (blocks_.empty() || used_ + size > kBlockBytes) grow();
  std::uint8_t* const start = blocks_.back() + used_;
  std::uint8_t* at = start;
  protect(PROT_READ | PROT_WRITE);
  for (const auto part : parts) at = std::copy(part.begin(), part.end(), at);
  protect(PROT_READ | PROT_EXEC);
  used_ += (size + 15) & ~std::size_t{15};
  return start;
}

void HostCode::grow() {
  void* block =
      mmap(nullptr, kBlockBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw IoError("cannot map memory for code of the host");
  blocks_.push_back(static_cast<std::uint8_t*>(block));
  used_ = 0;
}

void HostCode::protect(int protection) {
  if (mprotect(blocks_.back(), kBlockBytes, protection) != 0) {
    throw IoError("cannot make memory for code of the host executable");
  }
}

}  // namespace citcat
