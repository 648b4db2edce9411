#include "replay/verify/ordered_reads.h"

#include <cstdio>

namespace citcat {

namespace {

/// The longest operand of an 8087: what FSAVE stores (Intel, 8086 Family User's Manual, Numeric
/// Supplement, figure S-10).
constexpr std::uint32_t kLongestOperand = 94;

std::string text_of(const OrderedReads::Access& access) {
  char text[64];
  std::snprintf(text, sizeof text, "read of %u bytes at %08x", access.size, access.address.u32());
  return text;
}

}  // namespace

bool OrderedReads::is_of_coprocessor(const BusTransaction& t) const {
  return coprocessor_operand_ && t.address.is_within32(*coprocessor_operand_, kLongestOperand);
}

std::optional<Mismatch> OrderedReads::observe(Access& access) {
  const BusTransaction& t = waiting_.front();
  const bool equal = t.address == access.address.plus32(access.taken) && t.size != 0 &&
                     t.size <= access.size - access.taken;
  if (equal) {
    access.taken += t.size;
    ++compared_;
  } else if (!is_of_coprocessor(t)) {
    return Mismatch{"the processor read other data than the replay", t, text_of(access)};
  }
  waiting_.pop_front();
  return std::nullopt;
}

}  // namespace citcat
