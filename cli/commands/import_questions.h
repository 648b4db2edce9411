#pragma once
// What `import` answers instead of importing: the formats there are, and which channel of a capture
// is taken for which pin.

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

}  // namespace citcat
