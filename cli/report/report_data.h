#pragma once
// The figures of one recording for the page of `report`: the JSON of `info`, `verify`, `analyze`
// and, after a divergence, `explain`, from one replay.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "cli/console.h"
#include "cli/placed_recording.h"
#include "events/names/symbols.h"
#include "events/position.h"
#include "replay/session/checkpoint_start.h"
#include "replay/session/replay_report.h"
#include "replay/verify/comparison_policy.h"
#include "view/model/run_index.h"

namespace citcat {

class MachineCheck;

/// A recording, or some of its instructions.
struct ReportedRange {
  std::string recording;
  ReplayRange range;
  bool whole() const { return range.from == 0 && range.to == ReplayRange{}.to; }
};
/// Parses "FILE" or "FILE:FROM-TO". Positions are as for --from and --to (RangeArguments); TO may
/// be missing. Throws UsageError.
ReportedRange parse_reported_range(const std::string& text);

struct ReportOptions {
  std::vector<std::string> symbols;  ///< files of names
  std::string capture;  ///< of pin levels, which the recording was made of; may be empty
  CaptureOptions capture_options;
  bool cache = false;       ///< compare with the model of the declared cache too
  std::string cache_model;  ///< or with this one; empty: none is named
  /// Windows for what needs executions in their order; "none": all of the run; empty: what suits
  /// its length.
  std::string sample;
  unsigned explain_seconds = 60;  ///< for the causes of a divergence; 0: none are looked for
  /// That one instruction may take, a REP that goes on and on; 0: any.
  unsigned repeat_seconds = 60;
  ComparisonPolicy policy;
  /// Largest number of instructions for which the page holds every step; nothing: what suits the
  /// length.
  std::optional<std::uint64_t> steps;
};

struct ReportedRun {
  nlohmann::ordered_json data;
  bool agrees = false;    ///< the replay agreed with everything that it was compared with
  bool compared = false;  ///< with evidence or digests
  bool adopts = false;    ///< some results were taken over from the bus
  Position end;           ///< of what was replayed
  std::optional<Divergence> divergence;
  std::unique_ptr<view::RunIndex> index;   ///< of all that was replayed
  std::unique_ptr<const Symbols> symbols;  ///< of the recording, and of ReportOptions::symbols
};

/// Replays and asks. `machine` receives the place where the run ended, or is null. Throws what
/// replaying a recording throws.
ReportedRun report_run(const PlacedRecording& placed, const ReportedRange& what,
                       const ReportOptions& options, MachineCheck* machine, const Console& console);

}  // namespace citcat
