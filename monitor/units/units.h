#pragma once
// The units of a processor: each knows how the emulator differs from a processor in one matter.

#include "monitor/units/driver_window.h"
#include "monitor/units/extended_state.h"
#include "monitor/units/far_transfer.h"
#include "monitor/units/internal_values.h"
#include "monitor/units/local_apic.h"
#include "monitor/units/segment_guard.h"
#include "monitor/units/task_register.h"
#include "monitor/units/x87_unit.h"

namespace citcat::monitor {

struct Units {
  explicit Units(Observation& seen)
      : guard(seen),
        task_register(seen),
        far_transfer(seen),
        x87(seen),
        extended_state(seen, x87),
        values(seen),
        local_apic(seen.cpu.sink) {}

  SegmentGuard guard;
  TaskRegister task_register;
  FarTransfer far_transfer;
  X87Unit x87;
  ExtendedState extended_state;
  InternalValues values;
  LocalApic local_apic;
  DriverWindow window;
};

}  // namespace citcat::monitor
