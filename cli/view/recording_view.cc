#include "cli/view/recording_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cli/compare/parting.h"
#include "cli/interrupt.h"
#include "cli/view/divergence_causes.h"
#include "cli/view/machine_check.h"
#include "cli/view/viewed_recording.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "replay/session/checkpoints.h"
#include "view/model/answer_text.h"
#include "view/page/page_files.h"
#include "view/server/view_server.h"

namespace citcat {
namespace {

std::optional<std::string_view> page_file(std::string_view name) {
  for (const view::PageFile& file : view::page_files()) {
    if (file.name == name) return file.content;
  }
  return std::nullopt;
}

view::RunViewOptions view_options(const RecordingFile& file,
                                  const RecordingViewArguments& arguments, const Console& console) {
  view::RunViewOptions options;
  options.policy = arguments.comparison;
  if (!arguments.output.empty()) options.checkpoint_every = kHardlyEver;
  if (arguments.unchecked) return options;
  if (!Checkpoints(file).longest_series(arguments.comparison.strict).empty()) {
    options.compared_before = "the run was compared when its checkpoints were taken";
  }
  options.check = options.compared_before.empty() &&
                  (file.meta().evidence == EvidenceMode::full || !file.digests().empty());
  if (!options.check && options.compared_before.empty()) {
    console.warn("the archive holds neither evidence nor digests: nothing is compared");
  }
  return options;
}

/// As long as any answer may take.
constexpr unsigned kCauseSeconds = 20;

/// What is looked at: one run, or those of several processors, or two that are compared.
struct ViewedRuns {
  std::vector<std::unique_ptr<ViewedRecording>> all;
  std::unique_ptr<MachineCheck> machine;  ///< of several processors
  nlohmann::ordered_json names;           ///< of all, and where two part

  /// The answer to `runs`.
  nlohmann::ordered_json together() const {
    nlohmann::ordered_json json = names;
    if (machine == nullptr) return json;
    std::vector<nlohmann::ordered_json> each;
    for (const auto& run : all) each.push_back(run->view().answer("run", view::Query())["verdict"]);
    json["verdict"] = machine->verdict(each);
    return json;
  }
  /// The answer to `causes`: why a run diverged from its evidence.
  nlohmann::ordered_json causes(std::size_t run) const {
    ViewedRecording& viewed = *all[run];
    if (!viewed.view().timeline().divergence())
      return {{"causes", nlohmann::ordered_json::array()}};
    nlohmann::ordered_json json =
        causes_answer(find_causes(viewed.placed(), viewed.view().options().policy, kCauseSeconds));
    view::make_printable(json);
    return json;
  }
  bool look_further() const {
    const bool more = std::any_of(all.begin(), all.end(), [](const auto& run) {
      return run->view().look_further(kLookedAtOnce);
    });
    return more || (machine != nullptr && machine->look_further(kLookedAtOnce));
  }
};

ViewedRuns open_runs(const RecordingViewArguments& arguments, const Console& console) {
  ViewedRuns runs;
  if (arguments.machine) {
    runs.machine = std::make_unique<MachineCheck>(*arguments.machine, !arguments.unchecked,
                                                  arguments.comparison);
  }
  for (const std::string& name : arguments.recordings) {
    PlacedRecording placed = open_placed(name, console, arguments.hints);
    view::RunViewOptions options = view_options(placed.file, arguments, console);
    if (runs.machine != nullptr) {
      options.agreed = [check = runs.machine.get(), processor = placed.file.number()](
                           const Machine& at_end) { check->ended(processor, at_end); };
    }
    runs.all.push_back(std::make_unique<ViewedRecording>(std::move(placed), name, arguments.symbols,
                                                         std::move(options)));
  }
  if (!arguments.compare) {
    runs.names = runs_together(arguments.recordings, nullptr);
  } else {
    const nlohmann::ordered_json parting =
        parting_json({arguments.recordings[0], 0}, {arguments.recordings[1], 0}, console);
    runs.names = runs_together(arguments.recordings, &parting);
  }
  return runs;
}

view::ServedAnswer error_answer(unsigned status, const std::string& text) {
  const nlohmann::ordered_json json = {{"error", text}};
  return {status, json_text(json)};
}

view::ServedAnswer answer(const ViewedRuns& runs, const std::string& question,
                          view::ViewServer::Parameters parameters) {
  try {
    if (question == "runs") return {200, json_text(runs.together())};
    std::size_t run = 1;
    if (const auto named = parameters.extract("run")) {
      run = static_cast<std::size_t>(
          view::Query({{"run", named.mapped()}}).number("run", 1, runs.all.size()));
    }
    if (run == 0) throw UsageError("run: expected 1 for the first");
    if (question == "causes") return {200, json_text(runs.causes(run - 1))};
    return {200, json_text(runs.all[run - 1]->view().answer(question, view::Query(parameters)))};
  } catch (const UsageError& error) {
    return error_answer(400, error.what());
  } catch (const std::exception& error) {
    return error_answer(500, error.what());
  }
}

/// By xdg-open(1), which knows the browser; twice forked, so that nobody waits for it.
void open_browser(const std::string& url, const Console& console) {
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      setsid();
      const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
      for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
      execlp("xdg-open", "xdg-open", url.c_str(), nullptr);
    }
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  console.note("if no browser opens by itself, open this address in one; Ctrl-C ends the server");
}

void serve(const ViewedRuns& runs, const RecordingViewArguments& arguments,
           const Console& console) {
  take_endings_for_interrupts();
  view::ServerOptions options;
  options.port = arguments.port.value_or(0);
  view::ViewServer server(
      page_file,
      [&](const std::string& question, const view::ViewServer::Parameters& parameters) {
        return answer(runs, question, parameters);
      },
      options);
  console.print(server.url() + "\n");
  console.flush();
  if (!arguments.no_browser) open_browser(server.url(), console);
  server.serve(interrupt_requested, [&runs] { return runs.look_further(); });
  acknowledge_interrupt();
}

/// One file with a stretch of each run.
void export_runs(const ViewedRuns& runs, const RecordingViewArguments& arguments,
                 const Console& console) {
  std::vector<view::ExportedRun> exported;
  for (std::size_t i = 0; i < runs.all.size(); ++i) {
    const std::unique_ptr<ViewedRecording>& run = runs.all[i];
    const std::string& name = arguments.recordings[i];
    run->look_to(~std::uint64_t{0});
    const std::uint64_t end = run->view().index().told_to();
    // A run without instructions has a beginning, too.
    if (arguments.from >= end && arguments.from != 0) {
      throw UsageError(fmt::format("--from {}: {} has {} instructions", arguments.from, name, end));
    }
    view::ExportedRun& one = exported.emplace_back();
    one.view = &run->view();
    if (const auto& divergence = run->view().timeline().divergence()) {
      const nlohmann::ordered_json found = runs.causes(i);
      std::string cause = divergence->causes.empty() ? "" : divergence->causes.front();
      if (!found["causes"].empty()) cause = found["causes"][0]["text"].get<std::string>();
      one.divergence = divergence_item(name, divergence->reason, cause);
    }
    one.range = {arguments.from, std::min(arguments.to.value_or(end), end)};
    if (one.range.to <= one.range.from && end != 0) {
      throw UsageError(fmt::format("--to {}: expected more than --from {}; {} has {} instructions",
                                   one.range.to, one.range.from, name, end));
    }
    one.all = view::ExportRange{0, end};
  }
  while (runs.machine != nullptr && runs.machine->look_further(kLookedAtOnce)) check_interrupt();
  write_page(arguments.output, exported, runs.together(), nullptr, console);
}

}  // namespace

ExitCode view_recordings(const RecordingViewArguments& arguments, const Console& console) {
  const ViewedRuns runs = open_runs(arguments, console);
  if (arguments.output.empty()) {
    serve(runs, arguments, console);
  } else {
    export_runs(runs, arguments, console);
  }
  return ExitCode::ok;
}

}  // namespace citcat
