#pragma once
// Frames that the processor pushes by itself: for an interrupt, or for a call to another level.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "replay/slice/slice_log.h"

namespace citcat {

/// Slots of an interrupt's frame, from the highest address down (SDM vol. 3, 6.12).
enum class FrameSlot : std::uint8_t { gs, fs, ds, es, ss, sp, flags, cs, ip, error };

/// The items of a frame with so many of them; none if no frame has so many.
std::vector<FrameSlot> frame_of(std::size_t count);

/// A word that was pushed, the places of its bytes from the lowest one up.
struct PushedWord {
  std::array<PhysAddr, 8> bytes;
  std::uint32_t size = 0;
};

/// The frame among what was stored, the highest address first: words that lie one below the other.
/// Takes the frame out of the stores; the others are bits of descriptors.
std::vector<PushedWord> frame_among(std::span<const LoggedAccess> accesses);

}  // namespace citcat
