#pragma once
// Instructions executed here instead of by the engine: those it does not know, those whose result
// comes from outside, and those it does differently from the processor (docs/fidelity.md).

#include <cstdint>

#include "replay/machine/cpu_context.h"
#include "replay/machine/in_flight.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat {

class DebugUnit;
class ControlRegisters;
class EarlyCpuQuirks;
class ExceptionDelivery;
class ExtendedState;
class FarReturn;
class FarTransfer;
class FeatureGate;
class FloatingPoint;
class LongModeTransfer;
class ModelRegisters;
class NearTransfer;
class NewerIntegers;
class OperandPreparation;
class Operands;
class PortAccesses;
class Retirement;
class SegmentLoader;
class SystemManagement;

/// An instruction is made here if its class has a row in the table, and the row applies. emulate()
/// between runs of the engine: it prepares, executes and retires the instruction in flight, or
/// throws what the processor would.
class Emulator {
 public:
  /// All must outlive the object.
  Emulator(CpuContext& cpu, InFlight& flight, DebugUnit& debug, ModelRegisters& model_registers,
           Operands& operands, SegmentLoader& segments, ExceptionDelivery& delivery,
           FloatingPoint& fpu, Retirement& retirement, SystemManagement& smm, FarReturn& returns,
           NearTransfer& near, FarTransfer& transfers, EarlyCpuQuirks& early,
           OperandPreparation& preparation, ControlRegisters& control, LongModeTransfer& long_mode,
           ExtendedState& extended_state, PortAccesses& ports, NewerIntegers& integers,
           const FeatureGate& features)
      : cpu_(cpu),
        flight_(flight),
        debug_(debug),
        model_registers_(model_registers),
        operands_(operands),
        segments_(segments),
        delivery_(delivery),
        fpu_(fpu),
        retirement_(retirement),
        smm_(smm),
        returns_(returns),
        near_(near),
        transfers_(transfers),
        early_(early),
        preparation_(preparation),
        control_(control),
        long_mode_(long_mode),
        extended_state_(extended_state),
        ports_(ports),
        integers_(integers),
        features_(features) {}

  /// The engine must not execute the instruction in flight.
  bool is_made_here() const;
  /// Makes and retires it. Throws what the processor would.
  void emulate();

 private:
  struct Row;
  static const Row* row_of(InstructionClass kind);
  // When an instruction is made here, where not always.
  bool transfers() const;
  bool returns() const;
  bool returns_from_interrupt() const;
  bool wraps() const;
  bool pushes_before_a_page() const;
  bool is_mmx_of_host() const;
  bool is_sse_of_host() const;
  bool spares_engine() const;
  bool loads_segment() const;
  bool counts_or_long_mode() const;
  bool writes_control_register() const;
  bool reads_control_register() const;
  // What is made.
  void transfer();
  void return_near();
  void return_far();
  void load_far_pointer();
  void halt();
  void leave_smm();
  void cpuid();
  void rdtsc();
  void rdpmc();
  void rdmsr();
  void wrmsr();
  void syscall();
  void sysret();
  void swap_gs();
  void access_segment_base();
  void set_access_flag();
  void invalidate_contexts();
  void read_processor_id();
  void read_random();
  void newer_integer();
  void rdtscp();
  void read_port();
  void write_port();
  void load_segment();
  void write_control_register();
  void read_control_register();
  void write_debug_register();
  void read_debug_register();
  void store_machine_status();
  void floating_point();
  void xgetbv();
  void xsetbv();
  void xsave();
  void xrstor();

  void emulate_sysenter();
  void emulate_sysexit();
  void emulate_segment_push();
  void emulate_software_interrupt();
  void emulate_bound();

  CpuContext& cpu_;
  InFlight& flight_;
  DebugUnit& debug_;
  ModelRegisters& model_registers_;
  Operands& operands_;
  SegmentLoader& segments_;
  ExceptionDelivery& delivery_;
  FloatingPoint& fpu_;
  Retirement& retirement_;
  SystemManagement& smm_;
  FarReturn& returns_;
  NearTransfer& near_;
  FarTransfer& transfers_;
  EarlyCpuQuirks& early_;
  OperandPreparation& preparation_;
  ControlRegisters& control_;
  LongModeTransfer& long_mode_;
  ExtendedState& extended_state_;
  PortAccesses& ports_;
  NewerIntegers& integers_;
  const FeatureGate& features_;
};

}  // namespace citcat
