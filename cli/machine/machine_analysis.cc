#include "cli/machine/machine_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/interrupt.h"
#include "cli/machine/machine_verdict.h"
#include "cli/machine/processor_argument.h"
#include "formats/io/error.h"
#include "replay/processors/machine_session.h"
#include "tools/guest/recording_symbols.h"
#include "tools/host/report_renderers.h"
#include "tools/processors/locked_places.h"
#include "tools/processors/race_tool.h"
#include "tools/processors/sharing_tool.h"

namespace citcat {
namespace {

constexpr std::string_view kSharing = "sharing", kRaces = "races";

/// NAME or NAME:top=N.
struct Request {
  std::string name;
  std::size_t top = 20;
};

std::string_view name_of(std::string_view tool) { return tool.substr(0, tool.find(':')); }

bool is_of_all(std::string_view tool) {
  return name_of(tool) == kSharing || name_of(tool) == kRaces;
}

Request parse_request(const std::string& tool) {
  if (!is_of_all(tool)) {
    throw UsageError("--tool " + tool +
                     ": analyses one processor; sharing and races analyse all of " +
                     "them: use two commands");
  }
  Request request;
  request.name = name_of(tool);
  if (request.name.size() == tool.size()) return request;
  constexpr std::string_view kTop = "top=";
  const std::string_view option = std::string_view(tool).substr(request.name.size() + 1);
  const char* const end = option.data() + option.size();
  const char* const begin = option.data() + std::min(kTop.size(), option.size());
  const auto parsed = std::from_chars(begin, end, request.top);
  if (!option.starts_with(kTop) || parsed.ec != std::errc() || parsed.ptr != end || begin == end)
    throw UsageError("--tool " + tool + ": expected top=N after the colon");
  return request;
}

/// Tells several what it is told.
class SeveralListeners final : public MachineListener {
 public:
  void add(MachineListener& listener) { all_.push_back(&listener); }
  void access(const ProcessorAccess& access) override {
    check_interrupt();
    for (MachineListener* each : all_) each->access(access);
  }
  void called(std::uint8_t processor, LinearAddr from) override {
    for (MachineListener* each : all_) each->called(processor, from);
  }
  void returned(std::uint8_t processor) override {
    for (MachineListener* each : all_) each->returned(processor);
  }
  void interrupted(std::uint8_t processor, std::uint16_t signal) override {
    for (MachineListener* each : all_) each->interrupted(processor, signal);
  }
  void message(const ProcessorMessage& message) override {
    for (MachineListener* each : all_) each->message(message);
  }

 private:
  std::vector<MachineListener*> all_;
};

/// A place is one of locks before its first locked use too: a replay of its own finds them.
tools::LockedPlaces locked_places(const MachineFile& machine) {
  tools::LockedPlaces places;
  SeveralListeners listeners;
  listeners.add(places);
  (void)MachineSession(machine, listeners, std::nullopt).run();
  return places;
}

/// Who changes lines in its cache, and does not show when it takes them, hides what came first.
bool knows_order(const MachineFile& machine, const RecordingFile& first) {
  return machine.info().shows_sharing || first.recording().bus.form != CacheForm::write_back;
}

void print(const tools::Report& report, AnalysisFormat format, const Console& console) {
  switch (format) {
    case AnalysisFormat::json:
      return console.print_json(tools::report_json(report));
    case AnalysisFormat::csv:
      return print_csv(report, "", console);
    case AnalysisFormat::text:
      return console.print(tools::report_text(report));
  }
}

}  // namespace

bool asks_of_all_processors(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), is_of_all);
}

bool describe_tool_of_all(const std::string& name, const Console& console) {
  if (!is_of_all(name)) return false;
  const bool sharing = name == kSharing;
  console.print(
      fmt::format("{}: {}\n\nOptions\n  top=N  rows of a table (20)\n\n"
                  "It needs a whole recording of several processors, and replays them together.\n\n"
                  "Example\n  citcat analyze two.citcat --tool {}:top=50\n",
                  name,
                  sharing ? "what several processors communicate, and which lines move between them"
                          : "conflicting accesses of several processors that nothing orders",
                  name));
  return true;
}

ExitCode analyze_processors(const MachineAnalysisArguments& arguments, const Console& console) {
  const std::vector<std::string>& names = arguments.tools;
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  if (!machine) {
    throw UsageError("--tool " + names.front() +
                     ": needs a recording of several processors together, not of one alone");
  }
  const RecordingFile first = machine->open(0);
  const std::uint32_t line_bytes = shared_line_bytes(first.recording());
  const Symbols known = tools::known_symbols(first, arguments.symbols);
  SeveralListeners listeners;
  MachineSession session(*machine, listeners, arguments.policy);
  std::vector<std::unique_ptr<tools::SharingTool>> sharing;
  tools::LockedPlaces locked;
  std::vector<std::unique_ptr<tools::RaceTool>> races;
  std::vector<Request> requests;
  for (const std::string& tool : names) {
    requests.push_back(parse_request(tool));
    if (requests.back().name == kSharing) {
      sharing.push_back(std::make_unique<tools::SharingTool>(
          machine->processors(), line_bytes, [&session] { return session.clock(); },
          requests.back().top, known));
      listeners.add(*sharing.back());
    } else {
      if (races.empty()) locked = locked_places(*machine);
      races.push_back(std::make_unique<tools::RaceTool>(
          machine->processors(), requests.back().top, known, locked, knows_order(*machine, first)));
      listeners.add(*races.back());
    }
  }
  const std::vector<std::size_t> stopped = session.run();
  tools::Report report;
  for (const auto& tool : sharing) tool->report(report.group(std::string(kSharing), "sharing"));
  for (const auto& tool : races) tool->report(report.group(std::string(kRaces), "races"));
  print(report, arguments.format, console);
  bool agree = true;
  if (arguments.policy) {
    const std::vector<RecordingFile> files = open_processors(*machine);
    CrossCheck check = cross_check_of(*machine, files);
    agree = cross_check(*machine, files, check).clean();
    if (!agree) console.warn("the processors contradict each other: see citcat verify");
  }
  for (const std::size_t p : stopped) {
    console.warn("the replay of processor " + std::to_string(p) +
                 " did not reach its end: see citcat verify");
  }
  return agree && stopped.empty() ? ExitCode::ok : ExitCode::answer_is_no;
}

}  // namespace citcat
