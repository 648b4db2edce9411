#include "cli/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/compare/parting.h"
#include "cli/view/divergence_causes.h"
#include "cli/view/viewed_recording.h"
#include "events/position_text.h"
#include "view/model/answer_text.h"

namespace citcat {

namespace {

using Json = nlohmann::ordered_json;

/// Instructions of which a page holds each step, if nobody says how many: all of a run that is not
/// longer than the first, as many of a longer one as the second says. Each step costs a thousand
/// times what replaying it does.
constexpr std::uint64_t kHeldWhole = 1'000'000, kHeldOfLong = 100'000;
/// The number for runs that are so long that this takes most of the time.
constexpr std::uint64_t kLongRun = 10'000'000, kHeldOfLonger = 20'000, kForEachStep = 2'000;

std::uint64_t steps_held(std::uint64_t instructions) {
  if (instructions <= kHeldWhole) return instructions;
  if (instructions < kLongRun) return kHeldOfLong;
  return std::clamp(instructions / kForEachStep, kHeldOfLonger, kHeldOfLong);
}

/// All that is told of: the range that was asked for, as far as the run goes.
view::ExportRange told_range(const ReportedRecording& reported) {
  const std::uint64_t end = std::min(reported.run.end.instruction, reported.what.range.to);
  return {std::min(reported.what.range.from, end), end};
}

/// The instructions that the page holds: of a long run the first ones, or those that lead to the
/// place where the replay diverged from its evidence, or to a shutdown.
view::ExportRange held_range(const ReportedRecording& reported, const view::RunIndex& index,
                             const ReportOptions& options) {
  view::ExportRange all = told_range(reported);
  const std::uint64_t length = all.to - all.from;
  const std::uint64_t steps = options.steps.value_or(steps_held(length));
  if (length <= steps) return all;
  if (!reported.run.agrees || index.shutdown_at()) {
    all.from = all.to - steps;
  } else {
    all.to = all.from + steps;
  }
  return all;
}

/// The verdict of the analysis, as the page has verdicts.
Json page_verdict(const ReportedRecording& reported) {
  const ReportedRun& run = reported.run;
  if (!run.agrees) {
    std::string text = "the replay is not the run that was captured";
    if (run.divergence) {
      text = run.divergence->reason;
      if (!run.divergence->expected.empty()) text += "; expected " + run.divergence->expected;
      if (!run.divergence->found.empty()) text += ", found " + run.divergence->found;
    }
    return {{"state", "diverged"}, {"text", text}, {"moment", position_text(run.end)}};
  }
  if (!run.compared) {
    return {{"state", "not compared"},
            {"text", "nothing of the run is compared with its evidence"}};
  }
  const view::ExportRange all = told_range(reported);
  return {{"state", "match"},
          {"text", all.from == 0 ? fmt::format("all {} instructions agree with everything the bus "
                                               "showed",
                                               all.to)
                                 : fmt::format("instructions {} to {} agree with everything the "
                                               "bus showed",
                                               all.from, all.to)}};
}

/// Why the replay diverged from its evidence, with the likeliest cause that a search found; null
/// where it did not.
Json page_divergence(const ReportedRecording& reported, const Json& verdict) {
  if (reported.run.agrees) return nullptr;
  std::string cause;
  const Json::json_pointer first("/explain/rounds/0/causes/0/text");
  if (reported.run.data.contains(first)) {
    cause = reported.run.data[first].get<std::string>();
  } else if (reported.run.divergence && !reported.run.divergence->causes.empty()) {
    cause = reported.run.divergence->causes.front();
  }
  return divergence_item(reported.what.recording, verdict["text"].get<std::string>(), cause);
}

view::RunViewOptions options_of(ReportedRun& run, const ReportOptions& options) {
  view::RunViewOptions view;
  view.known = std::move(run.index);
  view.policy = options.policy;
  view.checkpoint_every = kHardlyEver;
  // What the comparison took over from the bus is there only where it is made again.
  view.check = run.compared && (!run.agrees || run.adopts);
  return view;
}

Json parting_of(const std::vector<ReportedRecording>& reported, const Console& console) {
  const ReportedRange &a = reported[0].what, &b = reported[1].what;
  return parting_json({a.recording, a.range.from}, {b.recording, b.range.from}, console);
}

}  // namespace

void write_report(const std::string& path, std::vector<ReportedRecording> reported, bool compare,
                  const MachineCheck* machine, const ReportOptions& options,
                  const Console& console) {
  std::vector<std::string> names;
  for (const ReportedRecording& one : reported) names.push_back(one.what.recording);
  const Json parting = compare ? parting_of(reported, console) : Json();
  Json figures = {{"version", CITCAT_VERSION}, {"runs", Json::array()}};
  std::vector<std::unique_ptr<ViewedRecording>> viewed;
  std::vector<view::ExportedRun> exported;
  std::vector<Json> verdicts;
  for (ReportedRecording& one : reported) {
    viewed.push_back(std::make_unique<ViewedRecording>(std::move(one.placed), one.what.recording,
                                                       std::move(one.run.symbols),
                                                       options_of(one.run, options)));
    const view::ExportRange all = told_range(one);
    view::RunView& view = viewed.back()->view();
    const Json& verdict = verdicts.emplace_back(page_verdict(one));
    exported.push_back({&view, held_range(one, view.index(), options), all, verdict,
                        page_divergence(one, verdict)});
    figures["runs"].push_back(std::move(one.run.data));
  }
  view::make_printable(figures, "\n\t");
  Json together = runs_together(names, compare ? &parting : nullptr);
  if (machine != nullptr) together["verdict"] = machine->verdict(verdicts);
  write_page(path, exported, together, figures, console);
}

}  // namespace citcat
