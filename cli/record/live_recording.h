#pragma once
// `record --live`: runs a machine at the emulator's own speed and keeps what the outside world did,
// so that the run can be repeated with the monitor inside.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/record/emulator_command.h"
#include "cli/record/live_session.h"

namespace citcat {

/// Runs the machine until it ends, or somebody ends it. `arguments` can be recorded. Throws IoError
/// where there is no whole session in the end; then nothing of it is left.
ExitCode record_live(const RecordArguments& arguments, const Console& console);

/// Prints the machine of a session, and what its console showed when.
void list_session(const LiveSession& session, bool json, const Console& console);

/// The command line that repeats the session's run with `program`.
std::vector<std::string> repeating_command(const LiveSession& session, const std::string& program);

}  // namespace citcat
