#pragma once
// Finds the accesses of an instruction before it is executed: translates its operands, checks them
// and reports them in the order in which the processor makes the accesses.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/class_facts.h"

namespace citcat {

class FarReturn;
class FloatingPoint;
class Operands;
class PortAccesses;
class SegmentLoader;

/// Fills the addresses and stores of InFlight; throws what the processor would, or NeedsMapping.
class OperandPreparation {
 public:
  /// All must outlive the object.
  OperandPreparation(CpuContext& cpu, InFlight& flight, Operands& operands, SegmentLoader& segments,
                     FloatingPoint& fpu, PortAccesses& ports, FarReturn& returns)
      : cpu_(cpu),
        flight_(flight),
        operands_(operands),
        segments_(segments),
        fpu_(fpu),
        ports_(ports),
        returns_(returns) {}

  /// Prepares the operands of the instruction in flight.
  void prepare();
  /// PUSH of a segment register with a 32-bit operand writes two bytes of its slot; the engine
  /// writes four. Where these lie in one page the other two are put back
  /// (Retirement::report_completed()).
  bool pushes_before_a_page() const;

 private:
  void prepare_descriptors(DescriptorUse use);
  void require(Permission permission) const;

  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;
  SegmentLoader& segments_;
  FloatingPoint& fpu_;
  PortAccesses& ports_;
  FarReturn& returns_;
};

}  // namespace citcat
