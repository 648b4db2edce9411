#pragma once
// The layout of the FXSAVE image. HostFpu keeps its state in the same form.

#include <array>
#include <cstddef>
#include <cstdint>

namespace citcat {

/// The area of FXSAVE (Intel SDM vol. 1, 10.5.1); same layout as CpuState::fx.
using FxImage = std::array<std::uint8_t, 512>;

}  // namespace citcat

namespace citcat::fx_image {

// Offsets in the FXSAVE image (SDM vol. 1, table 10-2).
inline constexpr std::size_t kControl = 0, kStatus = 2, kTags = 4, kOpcode = 6, kCodeOffset = 8,
                             kCodeSelector = 12, kDataOffset = 16, kDataSelector = 20, kMxcsr = 24,
                             kMxcsrMask = 28, kRegisters = 32, kXmm = 160, kEnd = 288, kEnd64 = 416;
inline constexpr std::size_t kSlot = 16;           // one x87 register in the FXSAVE image
inline constexpr std::size_t kRegisterBytes = 10;  // its contents

/// How many of the 16 bytes at `slot`, a multiple of 16, FXRSTOR reads (SDM vol. 1, table 10-2).
inline std::size_t restored_bytes(std::size_t slot) {
  return slot >= kRegisters && slot < kXmm ? kRegisterBytes : kSlot;
}

inline std::uint16_t load16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>(at[0] | at[1] << 8);
}
inline std::uint32_t load32(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(load16(at)) | static_cast<std::uint32_t>(load16(at + 2)) << 16;
}
inline void store16(std::uint8_t* at, std::uint32_t value) {
  at[0] = static_cast<std::uint8_t>(value);
  at[1] = static_cast<std::uint8_t>(value >> 8);
}
inline void store32(std::uint8_t* at, std::uint32_t value) {
  store16(at, value);
  store16(at + 2, value >> 16);
}

}  // namespace citcat::fx_image
