#pragma once
// Where a tool whose result is a file writes that file.

#include <string>

#include "tools/host/tool.h"

namespace citcat::tools {

/// The option `to`, else Setup::output; of a group (Setup::group) grouped_path() of it. Throws
/// UsageError where groups cannot have files of their own there, as on the standard output.
std::string tool_output(ToolOptions& options, const Setup& setup);

/// Throws UsageError unless `path` is, or becomes, a file: who writes others beside it must not
/// make them beside a device or a pipe. `tool` is for the message. Nothing is wrong with an empty
/// path.
void require_place_beside(const std::string& path, const std::string& tool);

/// The file of one group among several: "boot.kt.zst" becomes "boot.process=sh,level=3.kt.zst".
/// What has no place in the name of a file is there as in a URL: "%2F". Different groups have
/// different files.
std::string grouped_path(const std::string& path, const std::string& group);

}  // namespace citcat::tools
