#pragma once
// Commands of parts that a build leaves out (CITCAT_PARTS): they say so, whatever their arguments.

#include <string>

#include "cli/command.h"
#include "formats/io/error.h"

namespace citcat {

/// Takes any options. Running it throws UsageError, which names the part.
template <const char* kPart>
CommandRun define_absent(const CommandParser& parser) {
  parser.take_anything();
  return [](const Console&) -> ExitCode {
    throw UsageError(std::string("this build was made without the part \"") + kPart +
                     "\"; configure it with CITCAT_PARTS=all");
  };
}

/// The command `name`, which needs `kPart`.
template <const char* kPart>
constexpr Command absent_command(const char* name) {
  return {name, "Not in this build (CITCAT_PARTS)", "citcat --version", define_absent<kPart>};
}

}  // namespace citcat
