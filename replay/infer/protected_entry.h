#pragma once
// How a processor in protected mode took an interrupt, as a bus without a cache shows it: the gate
// and the descriptor it reads, the stack it takes from the task segment, the frame it pushes, and
// where the handler's code is fetched (Intel SDM vol. 3, 6.12).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/recording.h"

namespace citcat {

/// Addresses are physical, as captured.
struct ProtectedEntry {
  std::uint8_t vector = 0;
  PhysAddr gate;  ///< in the interrupt table
  std::uint16_t handler_cs = 0;
  std::uint32_t handler_eip = 0;
  PhysAddr code_descriptor;  ///< of handler_cs
  PhysAddr handler;          ///< the first code fetched after the frame
  // The frame.
  std::uint32_t eip = 0, eflags = 0;
  std::uint16_t cs = 0;
  PhysAddr frame;             ///< its lowest byte
  std::uint32_t frame_bytes;  ///< 12, or 20 where the stack changed
  /// Where the handler runs at a more privileged level: the stack of the interrupted code, and
  /// where the task segment holds that of the handler's level.
  struct Stack {
    std::uint16_t ss = 0;
    std::uint32_t esp = 0;
    PhysAddr in_task;
    std::uint32_t inner_esp = 0;
  };
  std::optional<Stack> stack;

  std::uint32_t level() const { return handler_cs & 3u; }
};

/// The entry that `traffic` begins with, its first transaction being the acknowledge of `vector`;
/// what memory held is told by `image`. Nullopt where it is not that of a 32-bit gate.
std::optional<ProtectedEntry> find_protected_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image);

/// The dword at an address that lies within one frame; nullopt where a byte of it is not known.
std::optional<std::uint32_t> known_dword(const MemoryImage& image, PhysAddr at);

}  // namespace citcat
