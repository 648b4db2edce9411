#pragma once
// How a processor in protected mode or in long mode took an interrupt, as a bus without a cache
// shows it: the gate and the descriptor it reads, the stack it takes from the task segment, the
// frame it pushes, and where the handler's code is fetched (Intel SDM vol. 3, 6.12 and 6.14).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "events/recording.h"
#include "replay/infer/registers/entry_traffic.h"

namespace citcat {

/// Addresses are physical, as captured.
struct ProtectedEntry {
  bool long_mode = false;  ///< through a gate of 16 bytes, and a frame of five times 8
  std::uint8_t vector = 0;
  PhysAddr gate;  ///< in the interrupt table
  std::uint16_t handler_cs = 0;
  std::uint64_t handler_ip = 0;
  PhysAddr code_descriptor;  ///< of handler_cs
  PhysAddr handler;          ///< the first code fetched after the frame
  // The frame.
  std::uint64_t ip = 0, flags = 0;
  std::uint16_t cs = 0;
  PhysAddr frame;                 ///< its lowest byte
  std::uint32_t frame_bytes = 0;  ///< 12, or 20 where the stack changed; in long mode 40
  /// The stack of the interrupted code, where the frame holds it: where the handler runs at a more
  /// privileged level, and in long mode always.
  struct Stack {
    std::uint16_t ss = 0;
    std::uint64_t sp = 0;
  };
  std::optional<Stack> stack;
  /// The stack of the handler, where it was taken from the task segment.
  struct TaskStack {
    PhysAddr at;
    std::uint32_t offset = 0;  ///< of it in the segment
  };
  std::optional<TaskStack> task_stack;

  std::uint32_t level() const { return handler_cs & 3u; }
  bool changes_level() const { return (cs & 3u) != level(); }
  std::uint32_t gate_bytes() const { return long_mode ? 16 : 8; }
};

/// The entry that `traffic` begins with, its first transaction being the acknowledge of `vector`;
/// `image` has the contents of memory. Nullopt if it did not go through a 32-bit gate.
std::optional<ProtectedEntry> find_protected_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image);
/// The same of a gate of long mode.
std::optional<ProtectedEntry> find_long_mode_entry(std::uint8_t vector,
                                                   std::span<const BusTransaction> traffic,
                                                   const MemoryImage& image);

}  // namespace citcat
