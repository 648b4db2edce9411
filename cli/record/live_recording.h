#pragma once
// `record --live`: runs a machine at the emulator's own speed and keeps what the outside world did,
// so that the run can be repeated with the monitor inside.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/record/emulator_command.h"
#include "cli/record/live_session.h"
#include "formats/io/temporary.h"

namespace citcat {

/// Runs the machine until it ends, or somebody ends it. `arguments` can be recorded. Throws IoError
/// where there is no whole session in the end; then nothing of it is left.
ExitCode record_live(const RecordArguments& arguments, const Console& console);

/// Prints the machine of a session, and what its console showed when.
void list_session(const LiveSession& session, bool json, const Console& console);

/// A run that is about to be repeated, with files of its own as long as it lives: the session's do
/// not change.
class RepeatedRun {
 public:
  /// Takes up the run of a session, with `program`, at the last moment from which the trigger
  /// `start` can still come. Throws IoError where it comes before what is kept.
  RepeatedRun(const LiveSession& session, const std::string& program, const std::string& start);

  const std::vector<std::string>& command() const { return command_; }
  /// A file among those that grow with the run; empty: there are none.
  std::string changes() const { return folder_ ? folder_->path() + "/state.qcow2" : ""; }
  /// Instructions that come before.
  std::uint64_t instructions() const { return moment_ ? moment_->place.instructions : 0; }

 private:
  std::optional<KeptMoment> moment_;
  std::optional<Temporary> folder_;
  std::vector<std::string> command_;
};

}  // namespace citcat
