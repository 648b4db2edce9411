#pragma once
// Delivery of exceptions and interrupts in long mode, from the gate of 16 bytes to the handler:
// Intel SDM vol. 3, 6.14; AMD64 Architecture Programmer's Manual vol. 2, 8.9.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class SegmentLoader;
class SystemMemory;

/// What is to be delivered, and what its frame holds.
struct LongModeEvent {
  CpuException exception;
  std::uint64_t return_ip = 0;
  std::uint32_t flags = 0;  ///< to be pushed
  bool software = false;    ///< INT n, INT3: the gate's level is compared
};

/// Between runs of the engine only.
class LongModeDelivery {
 public:
  /// All must outlive the object.
  LongModeDelivery(CpuContext& cpu, SystemMemory& system, SegmentLoader& segments)
      : cpu_(cpu), system_(system), segments_(segments) {}

  /// Throws what the processor would, with nothing changed but what was pushed.
  void deliver(const LongModeEvent& event);

 private:
  struct Gate {
    std::uint16_t selector = 0;
    std::uint64_t offset = 0;
    std::uint8_t stack = 0;  ///< number in the interrupt stack table, 0: none
    bool traps = false;      ///< leaves interrupts enabled
  };
  Gate read_gate(const LongModeEvent& event);
  Descriptor read_handler(std::uint16_t selector, std::uint32_t ext);
  std::uint64_t stack_pointer(const Gate& gate, bool inner, std::uint32_t level);
  std::uint64_t task_segment_stack(std::uint32_t at);

  CpuContext& cpu_;
  SystemMemory& system_;
  SegmentLoader& segments_;
};

}  // namespace citcat
