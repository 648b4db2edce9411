#pragma once
// Tools of parts that a build leaves out (CITCAT_PARTS): naming one is an error.

#include <memory>
#include <string>

#include "formats/io/error.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// ToolRow::make of a tool that is not there: throws UsageError, which names the part.
template <const char* kPart>
std::unique_ptr<Tool> make_absent(ToolOptions& options, const Setup&) {
  throw UsageError("--tool " + options.tool() + ": this build was made without the part \"" +
                   kPart + "\"; configure it with CITCAT_PARTS=all");
}

/// The tool `name`, which needs `kPart`.
template <const char* kPart>
constexpr ToolRow absent_tool(const char* name) {
  return {name,
          "Not in this build (CITCAT_PARTS)",
          "",
          "",
          ToolRow::Merging::exact,
          make_absent<kPart>};
}

}  // namespace citcat::tools
