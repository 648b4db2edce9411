#pragma once
// A machine as it would be if something on its bus had been different: recordings derived again
// from the transactions of all processors.

#include <string>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/processors/cross_check.h"
#include "replay/diagnose/processors/bus_change.h"

namespace citcat {

/// Writes an archive of `machine` with the change, for a trial: its clocks are numbers, and nothing
/// is left out that follows from what others wrote.
void write_changed_machine(const MachineFile& machine, const BusChange& change,
                           const std::string& path);
/// Whether the processors then agree with each other, as far as the bus alone tells.
CrossCheckResult check_changed_bus(const MachineFile& machine,
                                   const std::vector<RecordingFile>& files,
                                   const BusChange& change);

}  // namespace citcat
