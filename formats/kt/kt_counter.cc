#include "formats/kt/kt_counter.h"

#include <algorithm>

namespace citcat {

namespace {

/// Prefixes that may be before a string instruction, the repeat prefixes apart.
bool is_other_prefix(std::uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
      return true;
    default:
      return false;
  }
}

/// INS, OUTS; MOVS, CMPS; STOS, LODS, SCAS.
bool is_string_opcode(std::uint8_t byte) {
  return (byte >= 0x6c && byte <= 0x6f) || (byte >= 0xa4 && byte <= 0xa7) ||
         (byte >= 0xaa && byte <= 0xaf);
}

}  // namespace

bool is_repeated_string(std::span<const std::uint8_t> code, bool bits64) {
  bool repeated = false;
  for (const std::uint8_t byte : code) {
    const bool repeat = byte == 0xf2 || byte == 0xf3;
    const bool rex = bits64 && (byte & 0xf0) == 0x40;
    if (!repeat && !rex && !is_other_prefix(byte)) return repeated && is_string_opcode(byte);
    repeated |= repeat;
  }
  return false;
}

void KtCounter::follow_repeat(std::uint32_t eip, std::span<const std::uint8_t> code) {
  const bool same =
      eip == eip_ && std::equal(code.begin(), code.end(), code_.begin(), code_.begin() + size_);
  if (same) {
    ++place_.iteration;
    return;
  }
  if (eip == eip_ + size_) ++place_.instruction;
  place_.iteration = 0;
}

void KtCounter::remember(std::uint32_t eip, std::span<const std::uint8_t> code) {
  eip_ = eip;
  size_ = static_cast<std::uint8_t>(code.size());
  std::copy(code.begin(), code.end(), code_.begin());
}

}  // namespace citcat
