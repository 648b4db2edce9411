#pragma once
// citcat view of recordings: a page in a browser, served by citcat, or a file with a stretch.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/comparison_arguments.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/parsing/command_parser.h"
#include "events/archive/machine_file.h"

namespace citcat {

struct RecordingViewArguments {
  std::vector<std::string> recordings;  ///< each shown by itself, or two compared
  std::optional<MachineFile> machine;   ///< whose processors these are
  std::string hints, output;
  std::vector<std::string> symbols;
  std::uint64_t from = 0;
  std::optional<std::uint64_t> to;
  std::optional<std::uint16_t> port;
  bool no_browser = false, unchecked = false, compare = false;
  ComparisonPolicy comparison;

  void define(const CommandParser& parser);
  /// Some option was given that is of recordings alone.
  bool given() const {
    return !hints.empty() || !output.empty() || !symbols.empty() || port.has_value() ||
           no_browser || unchecked || compare;
  }
};

/// Serves until Ctrl-C, or writes the file. Throws UsageError in a build without the part "view".
ExitCode view_recordings(const RecordingViewArguments& arguments, const Console& console);

}  // namespace citcat
