#pragma once
// What people need to know before they import: the formats there are, and which channel was taken
// for which pin.

#include <string>
#include <vector>

#include "capture/bus/source.h"

namespace citcat {

/// One line a format, for `citcat import --list-formats`.
std::vector<std::string> list_formats();

/// For `citcat import --explain-channels CAPTURE`: the bus that was chosen, every pin with its
/// channel, what is missing and what that costs, and the channels nobody uses. Where no bus fits,
/// the nearest ones and what they lack. Throws what open_capture() throws, except for channels
/// that do not fit; UsageError for a format that has no channels.
std::vector<std::string> explain_channels(const std::vector<std::string>& paths,
                                          const CaptureOptions& options);

}  // namespace citcat
