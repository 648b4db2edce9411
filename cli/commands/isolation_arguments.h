#pragma once
// --isolate, for commands that run tools in shared objects.

#include <chrono>
#include <optional>

#include "cli/parsing/command_parser.h"

namespace citcat {

struct IsolationArguments {
  bool isolate = false;
  double seconds = 10;  ///< that a tool may take to answer

  void define(const CommandParser& parser);
  /// Setup::isolate
  std::optional<std::chrono::milliseconds> limit() const;
};

}  // namespace citcat
