#pragma once
// Converts one capture format to another, as far as the capture has the information: samples to
// samples, any capture to lists of its transactions.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bus/source.h"
#include "capture/inspect/extra_signals.h"
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

/// [from, to) of a capture: samples where samples are written, else transactions; or times from its
/// beginning, in place of these.
struct ConvertRange {
  std::uint64_t from = 0, to = ~std::uint64_t{0};
  std::optional<double> from_seconds, to_seconds;
};

struct ConvertOptions {
  ConvertRange range;
  ExtraSignals* extra = nullptr;  ///< of pins as vcd: what is beside them; may be null
  std::function<void(std::uint64_t)> progress;  ///< may be empty
};

/// Converts to `target` (an id of the table; "csv" is short for "record-csv"). Several segments
/// become one file, which says so in warnings. Throws UsageError for an unknown target, for
/// samples wanted from a capture that has none, for a range after its end and for times where no
/// rate is known, and what open_capture() throws.
ConvertResult convert_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                              std::string_view target, std::unique_ptr<ByteSink> sink,
                              const ConvertOptions& how = {});

}  // namespace citcat
