#pragma once
// Looks for signs that a sound capture cannot show: a probe that fell off is found in seconds here,
// in hours by a replay that diverged.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/inspect/line_check.h"

namespace citcat {

const char* confidence_name(FindingConfidence confidence);

struct LintFinding {
  std::string check;  ///< identifier: "stuck-line", "changed-without-writer", ...
  FindingConfidence confidence = FindingConfidence::possible;
  std::uint64_t count = 0;        ///< occurrences
  std::uint64_t transaction = 0;  ///< index of the first one
  std::uint64_t clock = 0;        ///< sample or clock of the first one
  std::string text;               ///< one line for people
};

struct LintReport {
  CaptureInfo info;
  std::uint64_t transactions = 0;
  std::vector<LintFinding> findings;  ///< the surest first
};

/// Reads the whole capture. What cannot be decoded at all is a finding as well, at the place where
/// decoding stopped; only files that cannot be opened throw, with FormatError if their format is
/// neither named nor recognised.
LintReport lint_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                        const std::function<void(std::uint64_t)>& progress = nullptr);

}  // namespace citcat
