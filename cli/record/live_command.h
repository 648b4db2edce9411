#pragma once
// The command line of a machine whose run QEMU keeps in its record/replay log, and the command line
// that repeats such a run (QEMU's documentation, "Record/replay").

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace citcat {

struct LiveCommand {
  std::vector<std::string> command;  ///< without -icount, which differs from run to run
  std::vector<std::string> images;   ///< files that the run begins with
  /// A sentence for each change that somebody notices.
  std::vector<std::string> changes;
  bool reads_input = false;  ///< the first serial port is the standard input
  /// Files of a kept session, which the command names with kKeptFile before them, and the images
  /// that show through them; "" for none.
  std::vector<std::pair<std::string, std::string>> kept_files;
};

/// Before the name of a file in a kept session's folder.
inline constexpr const char* kKeptFile = "citcat-session:";

/// Puts disks but floppies behind blkreplay, and their writes into temporary files; networks behind
/// filter-replay; the first serial port into the file `console`, too. Paths become whole ones.
/// Throws UsageError for what QEMU's log does not hold, with what to write instead.
/// `keeps`: the state of the machine is to be stored while it runs.
LiveCommand live_command(const std::vector<std::string>& command, const std::string& console,
                         bool keeps = false);

class OptionValue;
/// Puts another value in the place of each -drive that names a file of a kept session: `place`
/// changes its options and gets the file's name.
std::vector<std::string> with_kept_files(
    const std::vector<std::string>& command,
    const std::function<void(OptionValue& drive, const std::string& name)>& place);

/// The same machine without a terminal, a display, a monitor and a network: everything that comes
/// from outside is in the log.
std::vector<std::string> repeated_command(const std::vector<std::string>& live);

/// The clock of both: a shift that stays as it is. Throws UsageError for -icount shift=auto.
std::string live_clock(const std::vector<std::string>& command);

}  // namespace citcat
