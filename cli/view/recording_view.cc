#include "cli/view/recording_view.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/placed_recording.h"
#include "events/names/symbols.h"
#include "formats/io/atomic_file.h"
#include "formats/io/error.h"
#include "formats/io/json_text.h"
#include "replay/session/checkpoints.h"
#include "tools/guest/recording_symbols.h"
#include "view/exported/exported_page.h"
#include "view/model/run_view.h"
#include "view/page/page_files.h"
#include "view/server/view_server.h"

namespace citcat {
namespace {

/// Instructions that are looked at on the side between two questions: a few milliseconds, some tens
/// where the engine has to execute one after another.
constexpr std::uint64_t kIdleInstructions = std::uint64_t{1} << 16;

std::optional<std::string_view> page_file(std::string_view name) {
  for (const view::PageFile& file : view::page_files()) {
    if (file.name == name) return file.content;
  }
  return std::nullopt;
}

view::RunViewOptions view_options(const RecordingFile& file,
                                  const RecordingViewArguments& arguments, const Console& console) {
  view::RunViewOptions options;
  options.name = std::filesystem::path(arguments.recording).filename().string();
  options.policy = arguments.comparison;
  options.interrupted = interrupt_requested;
  if (arguments.unchecked) return options;
  options.compared_before = !Checkpoints(file).longest_series(arguments.comparison.strict).empty();
  options.check = !options.compared_before &&
                  (file.meta().evidence == EvidenceMode::full || !file.digests().empty());
  if (!options.check && !options.compared_before) {
    console.warn("the archive holds neither evidence nor digests: nothing is compared");
  }
  return options;
}

view::ServedAnswer error_answer(unsigned status, const std::string& text) {
  const nlohmann::ordered_json json = {{"error", text}};
  return {status, json_text(json)};
}

view::ServedAnswer answer(view::RunView& run, const std::string& question,
                          const view::ViewServer::Parameters& parameters) {
  try {
    return {200, json_text(run.answer(question, view::Query(parameters)))};
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
  console.note("open this address in a browser where none opens by itself; Ctrl-C ends");
}

void serve(view::RunView& run, const RecordingViewArguments& arguments, const Console& console) {
  take_endings_for_interrupts();
  view::ServerOptions options;
  options.port = arguments.port.value_or(0);
  view::ViewServer server(
      page_file,
      [&](const std::string& question, const view::ViewServer::Parameters& parameters) {
        return answer(run, question, parameters);
      },
      options);
  console.print(server.url() + "\n");
  console.flush();
  if (!arguments.no_browser) open_browser(server.url(), console);
  server.serve(interrupt_requested, [&] { return run.look_further(kIdleInstructions); });
  acknowledge_interrupt();
}

/// One file with a stretch of the run.
void write_page(view::RunView& run, const RecordingViewArguments& arguments,
                const Console& console) {
  while (run.look_further(kIdleInstructions)) check_interrupt();
  const std::uint64_t end = run.index().told_to();
  if (arguments.from >= end) {
    throw UsageError(fmt::format("--from {}: the run has {} instructions", arguments.from, end));
  }
  const std::optional<std::string> page =
      view::exported_page(run, {arguments.from, std::min(arguments.to.value_or(end), end)});
  if (!page) throw Interrupted();
  AtomicFile file(arguments.output);
  file.write({reinterpret_cast<const std::uint8_t*>(page->data()), page->size()});
  file.commit();
  console.note(fmt::format("{}: {} bytes", arguments.output, page->size()));
}

}  // namespace

ExitCode view_recording(const RecordingViewArguments& arguments, const Console& console) {
  const PlacedRecording placed = open_placed(arguments.recording, console, arguments.hints);
  const Symbols symbols = tools::known_symbols(placed.file, arguments.symbols);
  view::RunView run(placed.file, symbols, view_options(placed.file, arguments, console));
  if (arguments.output.empty()) {
    serve(run, arguments, console);
  } else {
    write_page(run, arguments, console);
  }
  return ExitCode::ok;
}

}  // namespace citcat
