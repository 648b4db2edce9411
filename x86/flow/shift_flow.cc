// Shifts and rotations of one register or place in memory.

#include <algorithm>

#include "x86/flag_effects.h"
#include "x86/flow/flow_maker.h"

namespace citcat::flow {
namespace {

/// The number of the bit that becomes bit `to` of a result of `bits` bits, or nullopt if that is
/// cleared. In a double shift, the second operand has the numbers from `bits` on. Where the count
/// is more than the 16 bits of both (undefined: Intel SDM vol. 2, SHRD), the first operand follows
/// again, on Intel's processors and in the engine.
std::optional<int> shifted_from(ZydisMnemonic mnemonic, int to, int count, int bits) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
      return to >= count ? std::optional(to - count) : std::nullopt;
    case ZYDIS_MNEMONIC_SHR:
      return to + count < bits ? std::optional(to + count) : std::nullopt;
    case ZYDIS_MNEMONIC_SAR:
      return std::min(to + count, bits - 1);
    case ZYDIS_MNEMONIC_ROL:
      return (to + bits - count % bits) % bits;
    case ZYDIS_MNEMONIC_ROR:
      return (to + count) % bits;
    case ZYDIS_MNEMONIC_SHLD:
      return to >= count ? to - count : std::max(2 * bits - count + to, 0);
    default:  // SHRD
      return (to + count) % (2 * bits);
  }
}

}  // namespace

bool FlowMaker::special_shifts() {
  switch (mnemonic()) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
      break;
    default:
      return false;
  }
  const bool is_double = mnemonic() == ZYDIS_MNEMONIC_SHLD || mnemonic() == ZYDIS_MNEMONIC_SHRD;
  const auto from = source(operand(0)), second = source(operand(is_double ? 1 : 0));
  const auto to = target(operand(0));
  const unsigned bytes = operand(0).size / 8;
  if (!from || !to || !second || bytes == 0) return false;
  const bool by_cl = shifts_by_cl(info_);
  const ValueSpan cl = at_gpr(kEcx, 0, 1);
  std::vector<ValueSpan> sources{{from->of, from->first, static_cast<std::uint16_t>(bytes)}};
  const auto source_byte = [&](unsigned b) {
    return b < bytes ? byte_of(*from, b) : byte_of(*second, b - bytes);
  };
  const unsigned known = shift_count(info_, 0) & shift_count_bits(info_);
  const unsigned first = by_cl ? 0 : known, last = by_cl ? shift_count_bits(info_) : known;
  for (unsigned i = 0; i < bytes; ++i) {
    std::vector<bool> has(2 * std::size_t{bytes});
    for (unsigned count = first; count <= last; ++count) {
      for (unsigned b = 8 * i; b < 8 * i + 8; ++b) {
        const auto bit = shifted_from(mnemonic(), static_cast<int>(b), static_cast<int>(count),
                                      static_cast<int>(8 * bytes));
        if (bit) has[static_cast<unsigned>(*bit) / 8] = true;
      }
    }
    std::vector<ValueSpan> parts;
    for (unsigned b = 0; b < 2 * bytes; ++b) {
      if (!has[b]) continue;
      parts.push_back(source_byte(b));
      if (b >= bytes) sources.push_back(source_byte(b));
    }
    if (by_cl) parts.push_back(cl);
    effect({byte_of(*to, i)}, {}, std::move(parts));
  }
  clear_above(*to, bytes);
  if (by_cl) sources.push_back(cl);
  add_flag_effects(std::move(sources));
  return true;
}

}  // namespace citcat::flow
