#pragma once
// The options by which every command that reads captures is told how.

#include <CLI/CLI.hpp>
#include <string>

#include "capture/bus/source.h"

namespace citcat {

struct CaptureArguments {
  std::string format, cpu, channels;

  /// --cpu and --channels; the object must outlive `app`.
  void define_pins(CLI::App& app);
  /// The same and --format.
  void define(CLI::App& app);
  /// Throws UsageError for a processor that there is none of.
  CaptureOptions options() const;
  bool given() const { return !format.empty() || !cpu.empty() || !channels.empty(); }
};

}  // namespace citcat
