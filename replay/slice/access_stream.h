#pragma once
// The bytes that one execution of an instruction read, or stored, one after the other, as flows
// number them.

#include <cstdint>
#include <span>
#include <vector>

#include "replay/slice/slice.h"
#include "replay/slice/slice_log.h"

namespace citcat {

struct AccessStream {
  std::vector<SliceMemory> pieces;
  std::uint32_t size = 0;

  void add(const SliceMemory& piece) {
    pieces.push_back(piece);
    size += piece.size;
  }
  void clear() {
    pieces.clear();
    size = 0;
  }
  /// Byte number `i`.
  SliceMemory at(std::uint32_t i) const;
};

/// The piece of memory of an access, `by` bytes further on.
SliceMemory accessed_memory(const LoggedAccess& access, std::uint32_t by);

/// An instruction's operands, in the order in which its flow has them. What the processor reads and
/// stores beside them for its own use - descriptors, accessed bits - is left out.
void fill_streams(const DecodedInstruction& info, std::span<const LoggedAccess> accesses,
                  std::uint32_t by, AccessStream& loads, AccessStream& stores);

}  // namespace citcat
