#pragma once
// Values that cross no bus: what CPUID, RDMSR, RDTSC, RDRAND and others returned to the program.

#include <array>
#include <cstdint>

#include "monitor/processor/observation.h"

namespace citcat::monitor {

class InternalValues {
 public:
  explicit InternalValues(Observation& seen) : seen_(seen) {}

  /// EAX, EBX, ECX and EDX after the instruction in flight.
  void say(const char* op);
  /// The number in EDX:EAX, whatever register has it, and CF in ECX (docs/formats/capture.md). The
  /// emulator has a number whenever it is asked for one (QEMU 10, target/i386/tcg/int_helper.c).
  void say_random(const char* op);

 private:
  void say_values(const char* op, std::array<std::uint32_t, 4> values);

  Observation& seen_;
};

}  // namespace citcat::monitor
