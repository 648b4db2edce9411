#pragma once

#include <cstddef>
#include <string>

#include "cli/command.h"
#include "cli/idtrace/idtrace_arguments.h"
#include "cli/parsing/command_parser.h"

namespace citcat {

/// `count` of an IDtrace file.
struct IdtraceCount {
  IdtraceArguments files;
  std::size_t top = 20;  ///< blocks to list

  void define(const CommandParser& parser);
  /// Whether `path` is a trace or profile of IDtrace's. Throws IoError.
  static bool takes(const std::string& path);
  void print(const std::string& path, bool json, const Console& console) const;
};

}  // namespace citcat
