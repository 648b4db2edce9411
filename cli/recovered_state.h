#pragma once
// `import --recover-state`: the capture is imported once for its bus traffic, the registers are
// worked out from that, and the recording is made with them. Memory that must have held something
// besides what the capture shows becomes hints of the recording.

#include <string>
#include <vector>

#include "capture/import/import.h"
#include "cli/console.h"
#include "replay/infer/registers/state_recovery.h"

namespace citcat {

/// The state at options.start, which must be an interrupt. A file beside `output` is made on the
/// way, and removed. After `seconds`, 0 for never, the search gives up. Throws UsageError for a
/// place at which no state can be recovered.
RecoveredState recover_state_of(const std::vector<std::string>& captures,
                                const ImportOptions& options, const std::string& output,
                                unsigned seconds, const Console& console);

nlohmann::ordered_json recovered_json(const RecoveredState& recovered);
/// Adds the memory that was recovered, as hints, to the recording that was made with the registers.
void add_recovered_memory(const RecoveredState& recovered, const std::string& archive);
/// One line a register.
std::vector<std::string> recovered_lines(const RecoveredState& recovered);

}  // namespace citcat
