#pragma once
// A share of an analysis on disk: what the tools found in a part of the run, for `merge` to put
// together. Layout: docs/formats/analysis-part.md.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/recording.h"
#include "tools/host/tool.h"

namespace citcat::tools {

struct AnalysisPart {
  std::string recording;                       ///< content hash of the archive
  std::string identity;                        ///< of the program and engine that replayed it
  std::vector<std::string> tools;              ///< as on the command line
  std::string where, by, window;               ///< the same
  std::uint32_t number = 1, count = 1;         ///< which share of how many
  std::uint64_t whole_from = 0, whole_to = 0;  ///< instructions of all shares
  std::uint64_t from = 0, to = 0;              ///< of this one
  bool stopped = false;                        ///< before the end of the run
  MachineFacts machine;
  std::vector<std::uint8_t> state;  ///< Analysis::save()

  /// Both are shares of one analysis.
  bool goes_with(const AnalysisPart& o) const {
    return recording == o.recording && identity == o.identity && tools == o.tools &&
           where == o.where && by == o.by && window == o.window && count == o.count &&
           whole_from == o.whole_from && whole_to == o.whole_to;
  }
};

/// Whether a file begins as such a share does. Throws IoError.
bool is_analysis_part(const std::string& path);
void write_analysis_part(const std::string& path, const AnalysisPart& part);
/// Throws FormatError if it is not a share, or damaged.
AnalysisPart read_analysis_part(const std::string& path);
AnalysisPart parse_analysis_part(std::span<const std::uint8_t> bytes, const std::string& name);

}  // namespace citcat::tools
