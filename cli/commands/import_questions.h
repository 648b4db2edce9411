#pragma once
// Answers the questions that `import` takes instead of importing: the known formats, the channel
// that was chosen for each pin, and a map of pins found by how the channels move.

#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "cli/console.h"

namespace citcat {

/// For --list-formats.
void print_formats(bool json, const Console& console);

/// For --explain-channels. Throws what explain_channels() throws.
void print_channels(const std::vector<std::string>& captures, const CaptureOptions& options,
                    bool json, const Console& console);

/// For --match-channels: writes a channel map of what match_by_activity() proposes to `map_path`,
/// and prints it with its reasons. FormatError when nothing can be proposed.
void propose_channels(const std::vector<std::string>& captures, const CaptureOptions& options,
                      const std::string& map_path, bool json, const Console& console);

}  // namespace citcat
