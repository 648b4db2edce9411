#pragma once
// Pushes of the processor itself: interrupt frames and return addresses.

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class SegmentLoader;
class SystemMemory;

/// Where an interrupt frame or a return address goes.
struct StackTop {
  Segment segment;
  std::uint32_t esp = 0;
  bool user = false;   ///< pushes are made with the user's rights
  bool inner = false;  ///< a more privileged level's stack: faults name its selector
};

/// Throws the stack fault or page fault that the processor would; what was pushed before stays.
class StackPusher {
 public:
  /// All must outlive the object.
  StackPusher(CpuContext& cpu, SystemMemory& system, SegmentLoader& segments)
      : cpu_(cpu), system_(system), segments_(segments) {}

  /// The stack of a more privileged level (SDM vol. 3, 6.12.1): the task segment names it.
  StackTop inner_stack(std::uint32_t level, std::uint32_t ext,
                       std::optional<Descriptor>& descriptor);
  /// Throws the stack fault or page fault that the processor would.
  void push(StackTop& top, std::uint32_t value, std::uint32_t width, std::uint32_t ext);
  /// Throws what `count` pushes would.
  void page_in_pushes(StackTop top, std::uint32_t width, unsigned count);

 private:
  std::uint32_t next_push(StackTop& top, std::uint32_t width, std::uint32_t ext) const;

  CpuContext& cpu_;
  SystemMemory& system_;
  SegmentLoader& segments_;
};

}  // namespace citcat
