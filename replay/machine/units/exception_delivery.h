#pragma once
// Delivery of exceptions and interrupts: Intel SDM vol. 3, chapter 6. The engine stops where an
// exception arises; everything from the gate to the first instruction of the handler happens here,
// access by access, because those accesses are on the bus and are checked like all others.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class DebugUnit;
class LongModeDelivery;
class SegmentLoader;
class StackPusher;
class SystemMemory;
class TaskSwitch;

/// Between runs of the engine only. What was in flight is discarded, position stays: the
/// instruction did not complete, unless the caller retires it.
class ExceptionDelivery {
 public:
  /// All must outlive the object.
  ExceptionDelivery(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug,
                    SystemMemory& system, SegmentLoader& segments, StackPusher& stack,
                    TaskSwitch& tasks, LongModeDelivery& long_mode)
      : cpu_(cpu),
        flight_(flight),
        expectation_(expectation),
        debug_(debug),
        system_(system),
        segments_(segments),
        stack_(stack),
        tasks_(tasks),
        long_mode_(long_mode) {}

  /// False when another exception was delivered instead, or the processor shut down.
  bool raise(CpuException exception, std::uint64_t return_ip, DeliveredEvent::Kind kind);
  /// Machine::interrupt().
  void interrupt(std::uint8_t vector, DeliveredEvent::Kind kind);
  /// Delivers what the instruction just completed has met.
  void take_debug_trap();

 private:
  void deliver(const CpuException& exception, std::uint64_t return_ip, DeliveredEvent::Kind kind);
  void require_room_in_real_mode() const;
  void deliver_real(std::uint8_t vector, std::uint32_t return_eip);
  Descriptor read_gate(std::uint8_t vector, bool software, std::uint32_t cpl);
  Descriptor read_handler(std::uint16_t selector, std::uint32_t cpl, bool from_v86,
                          std::uint32_t ext);
  void deliver_protected(const CpuException& exception, std::uint32_t return_eip,
                         DeliveredEvent::Kind kind);
  std::uint32_t pushed_flags(DeliveredEvent::Kind kind, std::uint8_t vector) const;

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  SystemMemory& system_;
  SegmentLoader& segments_;
  StackPusher& stack_;
  TaskSwitch& tasks_;
  LongModeDelivery& long_mode_;
};

}  // namespace citcat
