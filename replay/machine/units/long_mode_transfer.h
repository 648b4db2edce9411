#pragma once
// Far transfers, system calls and returns of processors in long mode (Intel SDM vol. 2, JMP, CALL,
// RET, IRET, SYSCALL, SYSRET, SYSENTER, SYSEXIT; AMD64 Architecture Programmer's Manual vol. 3).

#include <array>
#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

class DebugUnit;
class ExceptionDelivery;
class ModelRegisters;
class Operands;
class Retirement;
class SegmentLoader;
class SystemMemory;

/// Each makes and retires the instruction in flight, between runs of the engine, or throws what the
/// processor would, with nothing changed.
class LongModeTransfer {
 public:
  /// All must outlive the object.
  LongModeTransfer(CpuContext& cpu, InFlight& flight, DebugUnit& debug,
                   ModelRegisters& model_registers, SystemMemory& system, Operands& operands,
                   SegmentLoader& segments, ExceptionDelivery& delivery, Retirement& retirement)
      : cpu_(cpu),
        flight_(flight),
        debug_(debug),
        model_registers_(model_registers),
        system_(system),
        operands_(operands),
        segments_(segments),
        delivery_(delivery),
        retirement_(retirement) {}

  /// Far JMP, CALL and RET, and IRET. Their operands are not prepared.
  void transfer();
  void syscall();
  void sysret();
  void sysenter();
  void sysexit();

 private:
  /// Where execution goes on.
  struct Target {
    Segment code;
    std::uint64_t ip = 0;
  };
  /// The stack of an outer level.
  struct OuterStack {
    Segment segment;
    std::uint64_t rsp = 0;
  };
  void jump_or_call();
  void through_gate(const Descriptor& gate, std::uint32_t rpl);
  void push_return(std::uint32_t width);
  void push_on_inner_stack(std::uint32_t level, std::uint64_t target);
  void return_far();
  void return_from_interrupt();
  std::uint64_t read_operand(const MemoryOperand& operand, std::uint32_t size);
  std::uint64_t stacked(std::uint64_t above, std::uint32_t size);
  Target find_target(const Descriptor& code, std::uint16_t selector, std::uint64_t ip) const;
  Descriptor returned_code(std::uint16_t selector);
  OuterStack outer_stack(std::uint16_t selector, std::uint64_t rsp, const Target& target);
  void take_outer_stack(const OuterStack& stack, std::uint64_t released, bool wide);
  void load_flags(std::uint64_t image, std::uint32_t width, std::uint32_t cpl);
  void go_to(const Target& target);
  void finish(bool steps);

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  ModelRegisters& model_registers_;
  SystemMemory& system_;
  Operands& operands_;
  SegmentLoader& segments_;
  ExceptionDelivery& delivery_;
  Retirement& retirement_;
};

}  // namespace citcat
