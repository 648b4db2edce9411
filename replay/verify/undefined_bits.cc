#include "replay/verify/undefined_bits.h"

namespace citcat {

void UndefinedBits::note(PhysAddr a, Byte byte) {
  if (byte.bits != 0) {
    bytes_[a.value] = byte;
    lines_.insert(line_of(a));
  } else if (lines_.contains(line_of(a))) {
    bytes_.erase(a.value);
  }
}

const UndefinedBits::Byte* UndefinedBits::find(PhysAddr a) const {
  const auto byte = bytes_.find(a.value);
  return byte != bytes_.end() ? &byte->second : nullptr;
}

bool UndefinedBits::may_differ(PhysAddr a, std::uint8_t captured, const Memory& memory) const {
  const Byte* const byte = find(a);
  const auto ours = memory.defined_byte(a);
  return byte != nullptr && ours && ((*ours ^ captured) & ~byte->bits) == 0;
}

void UndefinedBits::forget(const BusTransaction& line, const Memory& memory) {
  const PhysAddr last = line.address.plus32(line.size - 1u);
  if (!lines_.contains(line_of(line.address)) && !lines_.contains(line_of(last))) return;
  for (std::uint32_t b = 0; b < line.size; ++b) {
    const PhysAddr at = line.address.plus32(b);
    if (memory.defined_byte(at) == line.data[b]) bytes_.erase(at.value);
  }
}

}  // namespace citcat
