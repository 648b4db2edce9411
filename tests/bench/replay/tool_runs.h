#pragma once
// One replay told to one tool or exporter, as `citcat analyze` does it.

#include <cstdint>
#include <string>
#include <vector>

#include "events/archive/recording_file.h"
#include "events/names/symbols.h"

namespace citcat::bench {

/// Every tool of the program, as the command line names it, with the options that it cannot do
/// without; and the cache of a processor beside that of any shape.
std::vector<std::string> all_tools();
/// Every exporter, which write to bench.export.
std::vector<std::string> all_exporters();

class ToolRun {
 public:
  /// What it refers to must outlive it.
  explicit ToolRun(const RecordingFile& file);
  /// Replays everything, unchecked, and makes the report. Returns the instructions.
  std::uint64_t run(const std::string& tool) const;

 private:
  const RecordingFile& file_;
  Symbols symbols_;
};

}  // namespace citcat::bench
