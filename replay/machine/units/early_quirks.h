#pragma once
// Makes processors before the 386 do what the engine does differently
// (x86/early_cpu_quirks.h).

#include <cstdint>
#include <optional>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/units/nec_instructions.h"
#include "x86/early_cpu_quirks.h"

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
  /// AfterStop::segment_end.
  void deliver_segment_end();
  /// The instruction in flight is one that an 8088 has, or does, otherwise.
  bool emulated_on_8088() const;
  /// Makes and retires that.
  void emulate();
  /// The division in flight on a processor that returns after it, which retires it.
  void raise_divide_error();
  /// Makes and retires an x87 instruction of an 80286, whose coprocessor does not answer.
  void emulate_coprocessor_cycles();

 private:
  void refuse_unknown() const;
  bool runs_microcode(const DecodedInstruction& info) const;
  void run_microcode();
  void run_nec_instruction();
  std::uint16_t read_operand();
  std::uint16_t read_word(SegmentRegister segment, std::uint16_t offset);
  void write_stores(std::uint16_t value);
  void set_code_segment(std::uint16_t selector);
  void write_operand(std::uint16_t value);
  void pop_cs();
  void load_cs();
  void push_stack_pointer();

  CpuContext& cpu_;
  InFlight& flight_;
  CodePatcher& patcher_;
  Operands& operands_;
  ExceptionDelivery& delivery_;
  PortAccesses& ports_;
  Retirement& retirement_;
  NecInstructions nec_{cpu_, flight_, operands_};

  std::optional<SegmentEndFault> segment_end_;
};

}  // namespace citcat
