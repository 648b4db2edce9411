#pragma once
// Far jumps and calls, to segments and through call gates, task gates and task segments (Intel SDM
// vol. 3, 5.8). The engine would make their memory accesses unobserved, and checks some things too
// late or not at all.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class DebugUnit;
class ExceptionDelivery;
class FarReturn;
class Operands;
class Retirement;
class SegmentLoader;
class StackPusher;
class TaskSwitch;

/// transfer() makes the far jump, call or IRET in flight and retires it; what it throws before the
/// commit point leaves everything as it was.
class FarTransfer {
 public:
  /// All must outlive the object.
  FarTransfer(CpuContext& cpu, InFlight& flight, DebugUnit& debug, Operands& operands,
              SegmentLoader& segments, StackPusher& stack, TaskSwitch& tasks,
              ExceptionDelivery& delivery, Retirement& retirement, FarReturn& returns)
      : cpu_(cpu),
        flight_(flight),
        debug_(debug),
        operands_(operands),
        segments_(segments),
        stack_(stack),
        tasks_(tasks),
        delivery_(delivery),
        retirement_(retirement),
        returns_(returns) {}

  /// Whether the far transfer about to run is made here. In protected mode all jumps and calls are,
  /// and what of IRET goes to another task, or elsewhere than the engine would go.
  bool transfers_here();
  /// Makes and retires it.
  void transfer();

 private:
  void transfer_to(std::uint16_t selector, std::uint32_t offset);
  void transfer_through(const Descriptor& gate, bool call);
  void transfer_through_call_gate(const Descriptor& gate, bool call);
  void push_gate_frame(const Descriptor& code, bool inner, bool wide, std::uint32_t parameters);
  void transfer_to_code(const Descriptor& code, std::uint32_t offset, bool call);
  void push_return_address(std::uint32_t width);
  void transfer_in_real_mode(std::uint16_t selector, std::uint32_t offset, bool call);

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  Operands& operands_;
  SegmentLoader& segments_;
  StackPusher& stack_;
  TaskSwitch& tasks_;
  ExceptionDelivery& delivery_;
  Retirement& retirement_;
  FarReturn& returns_;
};

}  // namespace citcat
