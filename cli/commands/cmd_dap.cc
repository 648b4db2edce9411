// citcat dap: a recorded machine in an editor, by the debug adapter protocol.

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/comparison_arguments.h"
#include "cli/interrupt.h"
#include "cli/machine/processor_argument.h"
#include "cli/moment_argument.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/transaction_text.h"
#include "debugger/adapter/adapter.h"
#include "debugger/dap/line.h"
#include "debugger/protocol/listener.h"
#include "debugger/server/sessions.h"
#include "events/names/symbol_file.h"
#include "formats/io/error.h"
#include "tools/guest/recording_symbols.h"

namespace citcat {
namespace {

struct DapArguments {
  std::string recording, at = "begin";
  std::vector<std::string> symbols;
  bool unchecked = false;
  std::optional<std::uint16_t> port;
  ComparisonPolicy comparison;
};

/// The recordings and names that the debuggees of a session use.
struct SessionFiles {
  std::vector<std::unique_ptr<PlacedRecording>> recordings;
  Symbols symbols;
  SourceLines lines;
};

/// Nothing is compared where that was done when checkpoints were taken, or where there is nothing
/// to compare with.
bool compares(const RecordingFile& file, const DapArguments& arguments) {
  if (arguments.unchecked) return false;
  if (file.meta().evidence != EvidenceMode::full && file.digests().empty()) return false;
  return Checkpoints(file).longest_series(arguments.comparison.strict).empty();
}

SourceLines lines_of(const std::vector<std::string>& symbols) {
  SourceLines lines;
  for (const std::string& name : symbols) {
    const SymbolFileName file = parse_symbol_file_name(name);
    lines.add(file.path, file.base);
  }
  return lines;
}

/// Nothing of one processor, and where the order of several is no longer known.
std::optional<BusTurns> turns_of(const std::string& recording, const SessionFiles& files) {
  const std::optional<MachineFile> machine = find_machine(recording);
  if (!machine || files.recordings.front()->file.meta().evidence != EvidenceMode::full)
    return std::nullopt;
  return BusTurns(shared_bus_of(*machine, open_processors(*machine)), machine->processors());
}

/// Requires a recording for which turns_of() returns an order.
std::vector<bool> foreign_writes_in(const std::string& recording, std::size_t processor) {
  const std::optional<MachineFile> machine = find_machine(recording);
  return foreign_writes_of(*machine, open_processors(*machine), processor);
}

dap::OpenedMachine open_machine(const DapArguments& arguments, const dap::LaunchWish& wish,
                                const Console& console) {
  const std::string recording = wish.recording.empty() ? arguments.recording : wish.recording;
  if (recording.empty()) throw UsageError("recording: expected the path of a recording");
  std::vector<std::string> symbols = arguments.symbols;
  symbols.insert(symbols.end(), wish.symbols.begin(), wish.symbols.end());
  auto files = std::make_shared<SessionFiles>();
  for (const std::string& name : names_of_processors(recording)) {
    files->recordings.push_back(std::make_unique<PlacedRecording>(open_placed(name, console)));
  }
  files->symbols = tools::known_symbols(files->recordings.front()->file, symbols);
  files->lines = lines_of(symbols);
  dap::OpenedMachine machine;
  for (std::size_t p = 0; p < files->recordings.size(); ++p) {
    const RecordingFile& file = files->recordings[p]->file;
    const std::string model{cpu_model_name(file.recording().initial.model)};
    machine.processors.push_back(
        {"processor " + std::to_string(p) + " (" + model + ")",
         std::make_unique<dap::Debuggee>(
             file, arguments.comparison, !wish.unchecked && compares(file, arguments),
             files->symbols, files->lines,
             [](const BusTransaction& t) { return transaction_text(t); })});
  }
  machine.turns = turns_of(recording, *files);
  machine.foreign = [recording](std::size_t p) { return foreign_writes_in(recording, p); };
  machine.holds = std::move(files);
  machine.at = wish.at.empty() ? arguments.at : wish.at;
  return machine;
}

void serve_dap(const DapArguments& arguments, int in, int out, const Console& console) {
  dap::Line line(in, out);
  dap::Adapter adapter(
      line, [&](const dap::LaunchWish& wish) { return open_machine(arguments, wish, console); });
  adapter.serve();
  if (!line.failure().empty()) throw IoError("the line to the editor: " + line.failure());
}

/// More sessions than this are turned away: each is a machine of its own in memory.
constexpr std::size_t kMostEditors = 16;

/// The exit status of the session's process. Whoever debugs reads all that the recorded machine had
/// in its memory: only the user who runs this program may, and root.
int serve_editor(const DapArguments& arguments, int client, const Console& console) {
  try {
    const std::optional<std::uint32_t> user = gdb::user_of_client(client);
    if (!user || (*user != geteuid() && *user != 0)) {
      console.warn("a client of another user was turned away");
      return static_cast<int>(ExitCode::usage);
    }
    serve_dap(arguments, client, client, console);
  } catch (const std::exception& error) {
    console.error(error.what());
    return static_cast<int>(ExitCode::system);
  }
  return 0;
}

/// Serves until Ctrl-C.
void listen_dap(const DapArguments& arguments, const Console& console) {
  take_endings_for_interrupts();
  gdb::Listener listener(*arguments.port);
  console.print(listener.address() + "\n");
  console.flush();
  Sessions sessions(kMostEditors);
  for (;;) {
    const bool comes = sessions.wait(listener.descriptor());
    check_interrupt();
    const int client = comes ? listener.accept() : -1;
    if (client < 0) continue;
    if (sessions.full()) {
      console.warn("there are " + std::to_string(kMostEditors) + " sessions: more are turned away");
    } else {
      sessions.begin([&] { return serve_editor(arguments, client, console); });
    }
    ::close(client);
  }
}

ExitCode run_dap(const DapArguments& arguments, const Console& console) {
  signal(SIGPIPE, SIG_IGN);
  // A file that is no recording is refused before an editor asks for it.
  if (!arguments.recording.empty())
    static_cast<void>(RecordingFile::open(names_of_processors(arguments.recording).front()));
  if (arguments.port) {
    listen_dap(arguments, console);
  } else {
    serve_dap(arguments, STDIN_FILENO, STDOUT_FILENO, console);
  }
  return ExitCode::ok;
}

CommandRun define_dap(const CommandParser& parser) {
  auto arguments = std::make_shared<DapArguments>();
  parser.add_option("RECORDING", arguments->recording,
                    "Recording to debug (default: the one that the editor names)");
  define_moment(parser, arguments->at);
  parser.add_option("--port", arguments->port,
                    "Serve on this port of the loopback address; 0: a free one (default: standard "
                    "input and output)");
  parser
      .add_option(
          "--symbols", arguments->symbols,
          "Programs that give names and source lines: FILE[@BASE][:PROCESS]; may be repeated")
      .repeated();
  define_comparison(parser, arguments->comparison);
  define_unchecked(parser, arguments->unchecked);
  return [arguments](const Console& console) { return run_dap(*arguments, console); };
}

}  // namespace

extern const Command kDapCommand{"dap",
                                 "Debug a recorded machine in an editor, forwards and backwards",
                                 "citcat dap boot.citcat --symbols vmlinux", define_dap};

}  // namespace citcat
