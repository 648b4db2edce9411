#pragma once
// What the processors before the 386 do differently from the engine
// (replay/x86/early_cpu_quirks.h).

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/x86/early_cpu_quirks.h"

namespace citcat {

class CodePatcher;
class ExceptionDelivery;
class Operands;
class PortAccesses;
class Retirement;

/// Asked of a processor without 32-bit registers in real mode only.
class EarlyCpuQuirks {
 public:
  /// All must outlive the object.
  EarlyCpuQuirks(CpuContext& cpu, InFlight& flight, CodePatcher& patcher, Operands& operands,
                 ExceptionDelivery& delivery, PortAccesses& ports, Retirement& retirement)
      : cpu_(cpu),
        flight_(flight),
        patcher_(patcher),
        operands_(operands),
        delivery_(delivery),
        ports_(ports),
        retirement_(retirement) {}

  /// True when the instruction is settled: it faults, or is executed here.
  bool prepare();
  void deliver_segment_end();
  bool emulated_on_8088() const;
  void emulate();
  void emulate_coprocessor_cycles();

 private:
  void reduce_8088_shift();

  CpuContext& cpu_;
  InFlight& flight_;
  CodePatcher& patcher_;
  Operands& operands_;
  ExceptionDelivery& delivery_;
  PortAccesses& ports_;
  Retirement& retirement_;

  std::optional<SegmentEndFault> segment_end_;
};

}  // namespace citcat
