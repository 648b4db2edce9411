#pragma once
// The command line of an emulator that is recorded: what is checked of it, and what the monitor
// adds.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace citcat {

/// What `record` is told.
struct RecordArguments {
  std::string output, internal, cache = "i486", start = "driver", stop, monitor;
  std::vector<std::string> command;  ///< the emulator and its options
  std::vector<std::string> symbols;  ///< files of names, as parse_symbol_file_name() reads them
  bool quit = false, json = false;
};

/// The value of an option of the emulator, which may be written with one dash or two; "" where it
/// is the last word.
std::optional<std::string> option_value(const std::vector<std::string>& command,
                                        const std::string& name);
/// Whether the emulator's console is the terminal that it was started from.
bool uses_terminal(const std::vector<std::string>& command);

/// Throws UsageError for what cannot be recorded, IoError and FormatError for files that the
/// emulator is going to read and that are not there or empty.
void check_command(const std::vector<std::string>& command);

/// The command with the monitor inside, which writes to the descriptors `data` and `control` and
/// reads the emulator's log from `log`, as the emulator's process names it. Throws UsageError for
/// more memory than can be recorded, IoError when there is no monitor.
std::vector<std::string> monitored_command(const RecordArguments& arguments, const std::string& log,
                                           int data, int control);

}  // namespace citcat
