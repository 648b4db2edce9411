#include "cli/report/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/analysis_run.h"
#include "cli/cache_report.h"
#include "cli/digest_verify.h"
#include "cli/interrupt.h"
#include "cli/placed_recording.h"
#include "cli/range_arguments.h"
#include "cli/report/capture_waveform.h"
#include "cli/report/explanation_json.h"
#include "cli/report/recording_info.h"
#include "cli/report/verdict.h"
#include "cli/view/divergence_causes.h"
#include "cli/view/machine_check.h"
#include "events/capture_time.h"
#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/text/shell_word.h"
#include "replay/run/replay_session.h"
#include "replay/session/time_budget.h"

namespace citcat {

namespace {

using Json = nlohmann::ordered_json;

/// What the figures of the page are drawn from. Sizes are such that the page stays below 5 MB
/// however long the run is: each tool bounds what it lists. Models of caches, translation buffers
/// and branch predictors are only for processors that have such.
std::vector<std::string> tools_for(CpuModel model) {
  std::vector<std::string> tools = {"count:blocks=40,listing=2000", "events", "io",
                                    "func:procedures=200,paths=1500", "map:regions=1024"};
  const CpuTraits& traits = cpu_traits(model);
  if (!traits.sixteen_bit) {
    tools.insert(tools.end(), {"switches:list=1000", "tlb:entries=16+32+64+128"});
  }
  if (traits.instructions >= InstructionSet::i486) {
    tools.insert(tools.end(), {"reuse:line=16", "cache:model=i486"});
  }
  if (traits.instructions >= InstructionSet::pentium) {
    tools.emplace_back("bpred:entries=64+256+1024+4096");
  }
  return tools;
}

/// The command that prints the JSON of the analysis.
std::string analyze_command(const ReportedRange& what, const ReportOptions& options,
                            const AnalysisPlan& plan) {
  std::string text = "citcat analyze " + shell_word(what.recording);
  if (what.range.from != 0) text += fmt::format(" --from {}", what.range.from);
  if (what.range.to != ReplayRange{}.to) text += fmt::format(" --to {}", what.range.to);
  if (!plan.sample.empty()) text += " --sample " + shell_word(plan.sample);
  for (const std::string& symbols : options.symbols) text += " --symbols " + shell_word(symbols);
  for (const std::string& tool : plan.tools) text += " --tool " + tool;
  return text + " --json";
}

/// The windows of --sample. Without the option, long runs have windows, because all figures would
/// take several times as long as a replay: up to twenty, and up to fifty in the longest runs. Twice
/// as many come no nearer to exact figures (docs/measurements/README.md).
std::string sample_of(const ReportOptions& options, const RecordingFile& file,
                      const ReplayRange& range) {
  constexpr std::uint64_t kMillion = 1'000'000, kLong = 10 * kMillion;
  constexpr std::uint64_t kFew = 20, kMany = 50, kFarthest = 5;
  if (options.sample == "none") return "";
  if (!options.sample.empty()) return options.sample;
  const std::uint64_t end = std::min(file.recording().instructions.value_or(0), range.to);
  const std::uint64_t length = end - std::min(end, range.from);
  if (length < kLong) return "";
  const auto millions = [&](std::uint64_t windows) {
    return (length / kMillion + windows - 1) / windows;
  };
  const std::uint64_t apart = std::max(millions(kMany), std::min(millions(kFew), kFarthest));
  return fmt::format("every {}M for 50k, warm 50k", apart);
}

/// Null where nothing diverged, or nothing can be tried.
Json explanation_of(const PlacedRecording& placed, const ReportOptions& options,
                    const Console& console) {
  const RecordingFile& file = placed.file;
  Progress progress = console.progress("explaining", "");
  const std::optional<Explanation> found =
      find_causes(placed, options.policy, options.explain_seconds,
                  [&progress](const char* step, std::uint64_t done) { progress.show(done, step); });
  if (!found) return nullptr;
  const Explanation& explanation = *found;
  HintFile hints{file.identity(false).hex(), file.hints()};
  hints.hints.insert(hints.hints.end(), explanation.hints.begin(), explanation.hints.end());
  return explanation_json(explanation, hints, clock_rate(file.recording().provenance));
}

/// The cache to compare with; null where that was not asked for, or is not possible.
const CacheDescriptor* cache_of(const RecordingFile& file, const ReportedRange& what,
                                const ReportOptions& options, const Console& console) {
  if (!options.cache && options.cache_model.empty()) return nullptr;
  const CacheDescriptor* const cache = choose_cache(file.recording().bus, options.cache_model);
  if (cache == nullptr) {
    console.warn(
        "no cache is compared: the recording declares none; name a model with --cache-model");
  } else if (!what.whole()) {
    console.note("a cache is followed over a whole run: not compared for a range");
  } else if (file.meta().evidence != EvidenceMode::full) {
    console.note("the recording has no evidence of lines: no cache is compared");
  } else {
    return cache;
  }
  return nullptr;
}

}  // namespace

ReportedRange parse_reported_range(const std::string& text) {
  ReportedRange what;
  what.recording = text;
  const std::size_t colon = text.rfind(':');
  const std::size_t dash = text.rfind('-');
  if (colon == std::string::npos || dash == std::string::npos || dash < colon) return what;
  RangeArguments range;
  range.from = text.substr(colon + 1, dash - colon - 1);
  range.to = text.substr(dash + 1);
  // Anything else may be the name of a file.
  const bool is_range =
      parse_position(range.from) && (range.to.empty() || parse_position(range.to));
  if (!is_range) return what;
  if (range.first() >= range.end()) throw UsageError(text + ": the range ends before it begins");
  what.recording = text.substr(0, colon);
  what.range = range.instructions();
  if (range.within_repeat()) throw UsageError(text + ": the range must not lie within a REP");
  return what;
}

ReportedRun report_run(const PlacedRecording& placed, const ReportedRange& what,
                       const ReportOptions& options, MachineCheck* machine,
                       const Console& console) {
  const RecordingFile& file = placed.file;
  AnalysisPlan plan;
  plan.tools = tools_for(file.recording().initial.model);
  plan.symbols = options.symbols;
  plan.range = what.range;
  plan.policy = options.policy;
  plan.sample = sample_of(options, file, what.range);
  // A verdict is of the whole run.
  plan.use_checkpoints = false;
  plan.cache = cache_of(file, what, options, console);
  Json verdict = nullptr;
  std::optional<bool> match;
  bool is_cut = false;  // an instruction took longer than it may
  ReportedRun run;
  TimeBudget in_repeat(options.repeat_seconds, TimeBudget::Counts::since_gain);
  plan.pause = [&, at = std::uint64_t{0}](Position now) mutable {
    if (std::exchange(at, now.instruction) != now.instruction) in_repeat.gained();
    return in_repeat.spent();
  };
  plan.beside = [&run] {
    run.index = view::RunIndex::from_beginning();
    return run.index.get();
  };
  plan.ended = [&](ReplaySession& session, const ReplayReport& report) {
    run.end = report.divergence ? report.divergence->position : session.position();
    run.index->end(run.end.instruction);
    is_cut = has_ended(&in_repeat);
    run.compared = session.verifier() != nullptr || file.meta().evidence == EvidenceMode::digests;
    run.adopts = session.verifier() != nullptr && session.verifier()->totals().adopted != 0;
    if (is_cut) {
      return console.warn(fmt::format(
          "instruction {} takes longer than {} s (--repeat-time): the page shows the run up to it",
          position_text(session.position()), options.repeat_seconds));
    }
    if (!what.whole()) return;
    if (session.verifier() != nullptr) {
      const Verdict found = verdict_of(session, report, placed, nullptr);
      verdict = verdict_json(found);
      match = found.match;
      if (machine != nullptr && found.match) machine->ended(file.number(), session.machine());
    } else if (file.meta().evidence == EvidenceMode::digests) {
      const DigestVerdict found = digest_verdict_of(session, report, file);
      verdict = digest_verdict_json(found, file);
      match = found.match();
    }
  };
  AnalysisResult result = run_analysis(file, plan, true, console);
  if (!result.report.divergence && result.report.instructions <= what.range.from &&
      what.range.from != 0) {
    throw UsageError(fmt::format("{}: the range begins at {}, the run has {} instructions",
                                 what.recording, what.range.from, result.report.instructions));
  }
  run.agrees = match.value_or(result.sure());
  run.divergence = result.report.divergence;
  run.data["name"] = std::filesystem::path(what.recording).filename().string();
  run.data["whole"] = what.whole() && !is_cut;
  run.data["info"] = recording_info(file);
  run.data["verify"] = std::move(verdict);
  run.data["analyze_command"] = analyze_command(what, options, plan);
  run.data["analyze"] = analysis_json(*result.analysis, what.range.from,
                                      std::min(result.report.instructions, what.range.to),
                                      result.report, result.sample);
  run.symbols = std::move(result.symbols);
  run.data["explain"] = nullptr;
  run.data["waveform"] = nullptr;
  if (result.report.divergence && !options.capture.empty() &&
      result.report.divergence->transaction != kNoTransaction) {
    run.data["waveform"] = capture_waveform(options.capture, options.capture_options,
                                            result.report.divergence->transaction);
  }
  if (result.report.divergence) run.data["explain"] = explanation_of(placed, options, console);
  return run;
}

}  // namespace citcat
