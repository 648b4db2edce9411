#pragma once
// A capture of a bus that several processors share becomes an archive with a recording of each.

#include <cstdint>
#include <string>
#include <vector>

#include "capture/import/import.h"

namespace citcat {

struct MachineImportOptions {
  /// For each processor. `capture.internal_path` is not used.
  ImportOptions each;
  /// Values that cross no bus, by processor; "" where a processor has none.
  std::vector<std::string> internal_paths;
};

struct MachineImportResult {
  ImportResult all;                      ///< of all processors together
  std::vector<ImportResult> processors;  ///< in the order of their numbers
};

/// Reads the capture once for each processor. Nothing is left of the archive when something throws.
MachineImportResult import_machine(const std::vector<std::string>& paths,
                                   const MachineImportOptions& options,
                                   const std::string& out_path);

}  // namespace citcat
