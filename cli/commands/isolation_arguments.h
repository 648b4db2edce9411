#pragma once
// --isolate, of commands that run tools of shared objects.

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>

namespace citcat {

struct IsolationArguments {
  bool isolate = false;
  double seconds = 10;  ///< that a tool may take to answer

  void define(CLI::App& app);
  /// Setup::isolate
  std::optional<std::chrono::milliseconds> limit() const;
};

}  // namespace citcat
