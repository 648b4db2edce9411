#pragma once
// The command line of an emulator that is recorded: what is checked in it, and what the monitor
// adds to it.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace citcat {

/// The arguments of `record`.
struct RecordArguments {
  std::string output, internal, cache = "i486", start, stop, monitor;
  std::vector<std::string> command;  ///< the emulator and its options
  std::vector<std::string> symbols;  ///< files of names, as parse_symbol_file_name() reads them
  unsigned processors = 1;           ///< of the machine that is recorded
  bool quit = false, json = false;
  bool exact = false;      ///< the command line as it is, or not at all
  bool live = false;       ///< keep a session that can be repeated, record nothing yet
  std::string from;        ///< the session that is repeated
  bool list = false;       ///< say what is in it, record nothing
  std::uint64_t keep = 0;  ///< of a session, about so many bytes; 0: all of it
  bool repeats = false;    ///< the command repeats a run by its log, and must not leave it
  /// The run is taken up after so many instructions, not at its beginning.
  std::uint64_t taken_up_at = 0;
  std::string changes;  ///< a file beside which the emulator writes; empty: nowhere
};

/// The monitor has a copy of what the machine uses of it.
inline constexpr std::uint64_t kMaxRecordedRam = std::uint64_t{64} << 30;

/// The value of an option of the emulator, which may be written with one dash or two; "" where it
/// is the last word.
std::optional<std::string> option_value(const std::vector<std::string>& command,
                                        const std::string& name);
/// Whether the emulator's console is the terminal that it was started from.
bool uses_terminal(const std::vector<std::string>& command);

/// The RAM that a value of -m gives; nullopt where it is not a size.
std::optional<std::uint64_t> bytes_of_ram(const std::string& value);
/// RAM of the machine. Throws UsageError for more than can be recorded.
std::uint64_t ram_bytes(const std::vector<std::string>& command);
/// The folder of this program.
std::filesystem::path own_folder();

/// Where a recording begins if no --start is given: with the driver's marker where the kernel keeps
/// a window for it, with the program whose end is to stop it, else with the machine.
std::string likely_start(const std::vector<std::string>& command, const std::string& stop);

/// Throws UsageError for what cannot be recorded, IoError and FormatError for files that the
/// emulator is going to read and that are not there or empty.
void check_command(const RecordArguments& arguments);

/// The command with the monitor inside, which writes to the descriptors `data` and `control` and
/// reads the emulator's log from `log`, as the emulator's process names it. Throws UsageError for
/// more memory than can be recorded, IoError when there is no monitor.
std::vector<std::string> monitored_command(const RecordArguments& arguments, const std::string& log,
                                           int data, int control);

}  // namespace citcat
