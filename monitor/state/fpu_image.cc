#include "monitor/state/fpu_image.h"

#include <algorithm>

namespace citcat::monitor {
namespace {

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b == 0; });
}

/// The opcode of the last instruction, in bytes 6 and 7, does not count.
bool x87_in_use(std::span<const std::uint8_t> image) {
  constexpr std::array<std::uint8_t, 5> kInitial = {0x7f, 0x03, 0, 0, 0};  // control, status, tags
  constexpr unsigned kPointersAt = 8;
  if (!std::equal(kInitial.begin(), kInitial.end(), image.begin())) return true;
  if (!all_zero(image.subspan(kPointersAt, kMxcsrAt - kPointersAt))) return true;
  return !all_zero(image.subspan(kX87RegistersAt, kXmmAt - kX87RegistersAt));
}

}  // namespace

std::uint64_t components_in_use(std::span<const std::uint8_t> image, CodeSize code) {
  const bool sse = !all_zero(image.subspan(kXmmAt, image_bytes(code) - kXmmAt));
  return (x87_in_use(image) ? kX87State : 0) | (sse ? kSseState : 0);
}

}  // namespace citcat::monitor
