#pragma once
// From one capture format to another, as far as the information goes: samples to samples, any
// capture to lists of its transactions.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bus/source.h"
#include "formats/io/byte_sink.h"

namespace citcat {

/// One row of the table of targets.
struct ConvertTarget {
  std::string_view id;           ///< that of the same CaptureFormat
  std::string_view description;  ///< one line
  bool needs_samples;            ///< only from captures of pin levels
};
std::span<const ConvertTarget> convert_targets();

struct ConvertResult {
  std::string from;
  std::uint64_t written = 0;   ///< samples or transactions
  std::uint64_t left_out = 0;  ///< transactions the target has no record for
  std::vector<std::string> warnings;
};

/// Converts to `target` (an id of the table; "csv" is short for "record-csv"). Several segments
/// become one file, which says so in warnings. Throws UsageError for an unknown target and for
/// samples wanted from a capture that has none, and what open_capture() throws.
ConvertResult convert_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                              std::string_view target, std::unique_ptr<ByteSink> sink,
                              const std::function<void(std::uint64_t)>& progress = nullptr);

}  // namespace citcat
