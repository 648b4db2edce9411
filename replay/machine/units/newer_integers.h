#pragma once
// The integer instructions of BMI1, BMI2, LZCNT, MOVBE and ADX: the engine has some of them, but
// changes flags that a processor leaves alone.

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class Operands;

class NewerIntegers {
 public:
  /// All must outlive the object.
  NewerIntegers(CpuContext& cpu, InFlight& flight, Operands& operands)
      : cpu_(cpu), flight_(flight), operands_(operands) {}

  /// The instruction in flight, whose operands are prepared.
  void execute();

 private:
  std::uint64_t value_of(OperandForm form);
  void write(OperandForm form, std::uint64_t value);

  CpuContext& cpu_;
  InFlight& flight_;
  Operands& operands_;
};

}  // namespace citcat
