#include "replay/slice/access_stream.h"

#include <algorithm>

namespace citcat {
namespace {

/// Processors differ in the order in which they read and store the parts of these: a flow has them
/// from the lowest address up, and what is pushed from the first one down.
void put_in_order(const DecodedInstruction& info, AccessStream& loads, AccessStream& stores) {
  const bool pushes = info.is(Operation::pusha) || info.kind == InstructionClass::far_call;
  const bool loads_parts = info.is(Operation::popa) || info.kind == InstructionClass::iret ||
                           info.kind == InstructionClass::far_return ||
                           info.kind == InstructionClass::load_far_pointer;
  const auto is_lower = [](const SliceMemory& a, const SliceMemory& b) {
    return a.linear < b.linear;
  };
  std::vector<SliceMemory>& stored = stores.pieces;
  if (pushes && !stored.empty() && is_lower(stored.front(), stored.back())) {
    std::reverse(stored.begin(), stored.end());
  }
  if (loads_parts) std::stable_sort(loads.pieces.begin(), loads.pieces.end(), is_lower);
}

/// Their image is no operand, but it is all that they read or store.
bool takes_image(InstructionClass kind) {
  return kind == InstructionClass::rsm || kind == InstructionClass::loadall;
}

}  // namespace

SliceMemory AccessStream::at(std::uint32_t i) const {
  for (const SliceMemory& piece : pieces) {
    if (i < piece.size) {
      return {piece.physical.plus32(i),
              piece.linear == LinearAddr{} ? LinearAddr{} : LinearAddr{piece.linear.value + i}, 1};
    }
    i -= piece.size;
  }
  return {};
}

SliceMemory accessed_memory(const LoggedAccess& access, std::uint32_t by) {
  // Iterations that go down, too, are told together in code of 32 bits and less only.
  const bool here = access.linear == LinearAddr{} || by == 0;
  return {access.physical.plus32(by), here ? access.linear : access.linear.plus32(by), access.size};
}

void fill_streams(const DecodedInstruction& info, std::span<const LoggedAccess> accesses,
                  std::uint32_t by, AccessStream& loads, AccessStream& stores) {
  loads.clear();
  stores.clear();
  for (const LoggedAccess& a : accesses) {
    if (a.kind != AccessKind::data && !takes_image(info.kind)) continue;
    (a.write ? stores : loads).add(accessed_memory(a, by));
  }
  put_in_order(info, loads, stores);
}

}  // namespace citcat
