#pragma once
// MOV to and from the control registers of processors with long mode, and EFER: what enters and
// leaves long mode, and what may not be set (Intel SDM vol. 3, 2.5 and 9.8.5). For other processors
// the engine executes them.

#include <cstdint>
#include <string>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class ModelRegisters;

class ControlRegisters {
 public:
  /// All must outlive the object.
  ControlRegisters(CpuContext& cpu, InFlight& flight, const ModelRegisters& model_registers)
      : cpu_(cpu), flight_(flight), model_registers_(model_registers) {}

  /// The instruction in flight. They throw what the processor would.
  void read();
  void write();
  /// WRMSR of EFER.
  void write_efer(std::uint64_t value);
  /// The registers of a state, as the engine has them. Throws UsageError where they use what is not
  /// executed.
  void take_loaded();

 private:
  void write_cr0(std::uint64_t value);
  void write_cr3(std::uint64_t value);
  void write_cr4(std::uint64_t value);
  [[noreturn]] void refuse(const std::string& what) const;

  CpuContext& cpu_;
  InFlight& flight_;
  const ModelRegisters& model_registers_;
};

}  // namespace citcat
