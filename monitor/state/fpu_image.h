#pragma once
// The layout of the FXSAVE image, with which the XSAVE area begins, and which parts of it are in
// their initial configuration (Intel SDM vol. 1, 10.5.1 and chapter 13).

#include <array>
#include <cstdint>
#include <span>

#include "monitor/instructions/insn_class.h"

namespace citcat::monitor {

/// Without it XSAVE and its like are #UD.
inline constexpr std::uint32_t kCr4OsXsave = 1u << 18;

/// State components: bits of XCR0 and of XSTATE_BV.
inline constexpr std::uint64_t kX87State = 1, kSseState = 2;

/// Offsets in the image: MXCSR with its mask, the x87 registers in slots of 16 bytes, those of SSE.
/// Places in the area. The header begins with XSTATE_BV.
inline constexpr unsigned kMxcsrAt = 24, kX87RegistersAt = 32, kXmmAt = 160, kHeaderAt = 512;
inline constexpr unsigned kX87RegisterBytes = 10, kSlotBytes = 16;
inline constexpr unsigned kAreaBytes = kHeaderAt + 8;  ///< as far as it is stored

/// Whether the block of 16 bytes at this offset of the image holds an x87 register.
inline bool is_x87_register(unsigned offset) {
  return offset >= kX87RegistersAt && offset < kXmmAt;
}

/// Up to the last register of the mode, XMM7 or XMM15. The rest of the 512 bytes is reserved.
inline unsigned image_bytes(CodeSize code) { return code == CodeSize::bits64 ? 416 : 288; }

/// The components that are not in their initial configuration (Intel SDM vol. 1, 13.6), of an image
/// that has all of them.
std::uint64_t components_in_use(std::span<const std::uint8_t> image, CodeSize code);

}  // namespace citcat::monitor
