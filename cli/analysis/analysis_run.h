#pragma once
// A replay that tools observe, in one process or several.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/trace_run.h"
#include "events/archive/recording_file.h"
#include "events/names/symbols.h"
#include "tools/guest/guest_names.h"
#include "tools/host/analysis.h"
#include "tools/host/names.h"
#include "tools/host/part_spool.h"
#include "tools/host/scope.h"
#include "tools/host/window_plan.h"

namespace citcat {

struct CacheDescriptor;

class Observer;
class ReplaySession;

/// What to analyse, and in which parts of the run.
struct AnalysisPlan {
  std::vector<std::string> tools;       ///< NAME:key=value,...
  const char* tools_option = "--tool";  ///< the option that named them, for messages
  std::string where, by;                ///< empty: everything, nothing
  std::string window;                   ///< empty: one, of it all
  /// The windows in which tools that need executions in order receive them; empty: everywhere.
  std::string sample;
  std::vector<std::string> symbols;         ///< files of names, besides those of the recording
  std::string output;                       ///< Setup::output
  std::shared_ptr<tools::PartSpool> spool;  ///< Setup::spool
  /// Setup::isolate
  std::optional<std::chrono::milliseconds> isolate;
  ReplayRange range;
  bool check = true;
  ComparisonPolicy policy;
  ExecutionPath path = ExecutionPath::blocks;
  bool use_checkpoints = true;
  /// SessionOptions::cache: of a whole run from its beginning on.
  const CacheDescriptor* cache = nullptr;
  /// Makes an observer that receives what the tools do (tools::JoinedObserver), for each replay
  /// from the beginning anew; may be empty.
  std::function<Observer*()> beside;
  /// Called when the replay has ended, with its session; may be empty.
  std::function<void(ReplaySession&, const ReplayReport&)> ended;
  /// SessionOptions::pause: where it says so the run is over. May be empty.
  std::function<bool(Position)> pause;
};

/// --sample as it was applied to a run.
struct AppliedSample {
  std::string plan;
  tools::WindowPlan::Share share;
  std::uint64_t of = 0;  ///< instructions
};

struct AnalysisResult {
  // What the tools refer to.
  std::unique_ptr<const Symbols> symbols;
  std::unique_ptr<tools::GuestNames> names;
  std::unique_ptr<tools::Analysis> analysis;
  ReplayReport report;
  std::optional<std::uint64_t> differs_before;
  std::optional<AppliedSample> sample;
  bool sure() const { return report.end != ReplayReport::End::diverged && !differs_before; }
};

/// The tools of the plan, before the run. Throws UsageError for what the plan has wrong.
std::unique_ptr<tools::Analysis> make_analysis(const AnalysisPlan& plan, const tools::Setup& setup);
/// Why the tools must see the run as a whole from its beginning; empty: they need not. `setup` has
/// names.
std::string why_serial(const AnalysisPlan& plan, const tools::Setup& setup);

/// Runs the analysis in this process. `begins`: nothing of the run was observed before.
AnalysisResult run_analysis(const RecordingFile& file, const AnalysisPlan& plan, bool begins,
                            const Console& console);
/// In so many processes, each from a checkpoint; in one where that cannot be, with a note why.
AnalysisResult run_parallel_analysis(const RecordingFile& file, const AnalysisPlan& plan,
                                     unsigned processes, const Console& console);

}  // namespace citcat
