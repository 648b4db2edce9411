#pragma once
// The other files that belong to an IDtrace file: they are beside it, unless the command line names
// them.

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/parsing/command_parser.h"
#include "formats/idtrace/block_file.h"
#include "formats/idtrace/code_file.h"

namespace citcat {

/// Blocks and code of the program that a trace or profile is of.
struct IdtraceProgram {
  std::unique_ptr<const IdtraceBlocks> blocks;  ///< never null
  std::optional<IdtraceCode> code;              ///< refers to `blocks`
};

struct IdtraceArguments {
  std::string blocks, image;

  /// --blocks and --image.
  void define(const CommandParser& parser);
  /// Loads the program of the trace or profile `path`. What comes through a pipe is read to its end
  /// first: its writer completes the other files before. Throws UsageError where `path` says
  /// nothing of where they are, and FormatError, IoError of the files; a missing file of code is
  /// none unless `code_needed`.
  IdtraceProgram load(const std::string& path, bool code_needed) const;
};

}  // namespace citcat
