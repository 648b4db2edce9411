#pragma once
// The options of every command that reads captures: they say how to read them.

#include <string>

#include "capture/bus/source.h"
#include "cli/parsing/command_parser.h"

namespace citcat {

struct CaptureArguments {
  std::string format, cpu, channels;

  /// --cpu and --channels; the object must outlive `parser`.
  void define_pins(const CommandParser& parser);
  /// The same and --format.
  void define(const CommandParser& parser);
  /// Throws UsageError for an unknown processor.
  CaptureOptions options() const;
  bool given() const { return !format.empty() || !cpu.empty() || !channels.empty(); }
};

}  // namespace citcat
