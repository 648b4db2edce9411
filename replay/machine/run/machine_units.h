#pragma once
// The units that make up a machine, each made with those that it may call.

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/fast_tier.h"
#include "replay/machine/in_flight.h"
#include "replay/machine/run/code_fetch.h"
#include "replay/machine/run/engine_events.h"
#include "replay/machine/run/engine_translations.h"
#include "replay/machine/run/instruction_runner.h"
#include "replay/machine/run/run_loop.h"
#include "replay/machine/run/string_runner.h"
#include "replay/machine/run/translation_watch.h"
#include "replay/machine/run/walk_reporter.h"
#include "replay/machine/segment_rights.h"
#include "replay/machine/units/code_patcher.h"
#include "replay/machine/units/control_registers.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/early_quirks.h"
#include "replay/machine/units/emulator.h"
#include "replay/machine/units/exception_delivery.h"
#include "replay/machine/units/extended_state.h"
#include "replay/machine/units/far_return.h"
#include "replay/machine/units/far_transfer.h"
#include "replay/machine/units/feature_gate.h"
#include "replay/machine/units/flag_correction.h"
#include "replay/machine/units/floating_point.h"
#include "replay/machine/units/long_mode_delivery.h"
#include "replay/machine/units/long_mode_transfer.h"
#include "replay/machine/units/model_registers.h"
#include "replay/machine/units/near_transfer.h"
#include "replay/machine/units/newer_integers.h"
#include "replay/machine/units/operand_preparation.h"
#include "replay/machine/units/operands.h"
#include "replay/machine/units/port_accesses.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/segment_loader.h"
#include "replay/machine/units/stack_pusher.h"
#include "replay/machine/units/system_management.h"
#include "replay/machine/units/system_memory.h"
#include "replay/machine/units/task_switch.h"

namespace citcat {

/// The units in the order in which they are made: a unit calls those above it. Only callbacks of
/// the engine and the MMU come before the units that they call.
struct MachineUnits {
  MachineUnits(CpuModel model, const BusModel& bus, Environment& environment,
               const Listeners& listeners, ExecutionPath path)
      : cpu(model, bus, environment, listeners, path, events, walks) {}

  WalkReporter walks{cpu, fast};
  EngineEvents events{instructions, watch, translations, ports};
  CpuContext cpu;
  InFlight flight;
  Expectation expectation{cpu};
  SegmentRights rights;

  DebugUnit debug{cpu};
  FastTier fast{cpu, flight, expectation, debug};
  ModelRegisters model_registers{cpu};
  ControlRegisters control{cpu, flight, model_registers};
  FeatureGate features{cpu, model_registers};
  SystemMemory system{cpu};
  CodePatcher patcher{cpu, flight};
  Operands operands{cpu, flight, expectation, debug, patcher};
  SegmentLoader segments{cpu, flight, system, operands, model_registers};
  StackPusher stack{cpu, system, segments};
  TaskSwitch tasks{cpu, flight, debug, system, segments, stack};
  LongModeDelivery long_delivery{cpu, system, segments};
  ExceptionDelivery delivery{cpu,      flight, expectation, debug,        system,
                             segments, stack,  tasks,       long_delivery};
  FloatingPoint fpu{cpu, flight, operands};
  ExtendedState extended_state{cpu, flight, model_registers, operands, fpu};
  PortAccesses ports{cpu, flight, debug, system, operands};
  FlagCorrection flag_correction{cpu, operands};
  Retirement retirement{cpu, flight, expectation, rights, debug, segments, delivery, fpu, ports};
  SystemManagement smm{cpu, flight, debug, retirement};
  FarReturn returns{cpu, flight, operands, segments, retirement};
  NearTransfer near{cpu, flight, operands, retirement, returns};
  FarTransfer transfers{cpu,   flight, debug,    operands,   segments,
                        stack, tasks,  delivery, retirement, returns};
  LongModeTransfer long_transfers{cpu,      flight,   debug,    model_registers, system,
                                  operands, segments, delivery, retirement};
  EarlyCpuQuirks early{cpu, flight, patcher, operands, delivery, ports, retirement};
  OperandPreparation preparation{cpu, flight, operands, segments, fpu, ports, returns};
  NewerIntegers integers{cpu, flight, operands};
  Emulator emulator{cpu,
                    flight,
                    debug,
                    model_registers,
                    operands,
                    segments,
                    delivery,
                    fpu,
                    retirement,
                    smm,
                    returns,
                    near,
                    transfers,
                    early,
                    preparation,
                    control,
                    long_transfers,
                    extended_state,
                    ports,
                    integers,
                    features};
  TranslationWatch watch{cpu};
  EngineTranslations translations{cpu, flight};
  CodeFetch code{cpu, flight, expectation};
  StringRunner strings{cpu, flight, expectation, rights, debug, retirement};
  InstructionRunner instructions{cpu,      flight,      expectation,     debug,      patcher,
                                 operands, delivery,    flag_correction, retirement, near,
                                 early,    preparation, emulator,        code,       translations,
                                 strings,  features};
  RunLoop loop{cpu,
               flight,
               expectation,
               rights,
               {patcher, delivery, ports, flag_correction, early, instructions, watch, fast}};
};

}  // namespace citcat
