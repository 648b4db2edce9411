// citcat debug: gdb on a recorded machine, forwards and backwards.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
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
#include "debugger/protocol/connection.h"
#include "debugger/protocol/listener.h"
#include "debugger/server/gdb_server.h"
#include "debugger/server/monitor.h"
#include "debugger/server/sessions.h"
#include "debugger/target/machine_target.h"
#include "events/archive/machine_file.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

struct DebugArguments {
  std::string recording, hints, at = "begin", gdb = "gdb", socket;
  ProcessorArgument processor;
  std::vector<std::string> gdb_arguments;
  bool stdio = false, unchecked = false;
  std::optional<std::uint16_t> port;
  bool listens() const { return port.has_value() || !socket.empty(); }
  ComparisonPolicy comparison;
};

/// What is compared on the way: nothing where that was done when checkpoints were taken, or where
/// there is nothing to compare with.
bool compares(const RecordingFile& file, const DebugArguments& arguments, const Console& console) {
  if (arguments.unchecked) return false;
  if (file.meta().evidence != EvidenceMode::full && file.digests().empty()) {
    console.warn("the archive holds neither evidence nor digests: nothing is compared");
    return false;
  }
  return Checkpoints(file).longest_series(arguments.comparison.strict).empty();
}

/// Where --at is.
ProcessorPlace begin_of(const DebugArguments& arguments) {
  std::optional<ProcessorPlace> begin = split_processor(arguments.at);
  if (!begin || (begin->processor && !parse_position(begin->place))) {
    throw UsageError("--at: expected a position P:N or P:N+K with the number of a processor, " +
                     ("found '" + arguments.at + "'"));
  }
  return *std::move(begin);
}

/// The recordings to debug: one, or one of each processor.
struct Debugged {
  std::vector<RecordingFile> files;
  std::optional<MachineFile> machine;
};

Debugged open_debugged(const DebugArguments& arguments, const Console& console) {
  Debugged debugged;
  debugged.machine = find_machine(arguments.recording);
  if (debugged.machine && !arguments.hints.empty()) {
    throw UsageError("--hints are corrections for one processor: name it with --processor");
  }
  for (const std::string& name : names_of_processors(arguments.recording))
    debugged.files.push_back(open_placed(name, console, arguments.hints).file);
  const ProcessorPlace begin = begin_of(arguments);
  if (begin.processor.value_or(0) >= debugged.files.size()) {
    throw UsageError(fmt::format("--at {}: {} has no processor {}", arguments.at,
                                 arguments.recording, *begin.processor));
  }
  return debugged;
}

/// What a session needs of each processor.
struct Looker {
  Looker(const RecordingFile& file, const DebugArguments& arguments, const Console& console)
      : target(file, arguments.comparison, compares(file, arguments, console)),
        monitor(target, [](const BusTransaction& t) { return transaction_text(t); }) {}
  DebugTarget target;
  Monitor monitor;
};

/// The processor that diverges from its evidence first in the order of the bus, at that place.
/// Throws UsageError where none does.
std::size_t seek_divergence(const std::vector<std::unique_ptr<Looker>>& lookers,
                            const BusTurns& turns) {
  std::optional<std::size_t> first;
  std::uint64_t turn = 0;
  for (std::size_t p = 0; p < lookers.size(); ++p) {
    try {
      lookers[p]->monitor.seek("divergence");
    } catch (const UsageError&) {
      if (p + 1 == lookers.size() && !first) throw;
      continue;
    }
    const std::uint64_t its = turns.turn_of(p, lookers[p]->target.timeline().position());
    if (!first || its < turn) turn = its, first = p;
  }
  return *first;
}

/// Goes to where the session begins. Returns the processor that is there.
std::size_t seek_begin(const std::vector<std::unique_ptr<Looker>>& lookers, MachineTarget& machine,
                       const BusTurns& turns, const ProcessorPlace& begin) {
  if (begin.place == "begin" || begin.place == "end") {
    for (const auto& its : lookers) its->monitor.seek(begin.place);
    return 0;
  }
  std::size_t p = begin.processor.value_or(0);
  if (begin.place == "divergence") {
    p = seek_divergence(lookers, turns);
  } else {
    lookers[p]->monitor.seek(begin.place);
  }
  machine.follow(p);
  return p;
}

/// One session, on two descriptors.
void serve(const Debugged& debugged, const DebugArguments& arguments, int in, int out,
           const Console& console) {
  std::vector<std::unique_ptr<Looker>> lookers;
  std::vector<DebugTarget*> targets;
  std::vector<Monitor*> monitors;
  for (const RecordingFile& file : debugged.files) {
    lookers.push_back(std::make_unique<Looker>(file, arguments, console));
    targets.push_back(&lookers.back()->target);
    monitors.push_back(&lookers.back()->monitor);
  }
  const BusTurns turns =
      debugged.machine
          ? BusTurns(shared_bus_of(*debugged.machine, debugged.files), debugged.files.size())
          : BusTurns();
  MachineTarget::ForeignWrites foreign;
  if (debugged.machine) {
    foreign = [&](std::size_t p) {
      return foreign_writes_of(*debugged.machine, debugged.files, p);
    };
  }
  MachineTarget machine(targets, turns, std::move(foreign));
  gdb::Connection connection(in, out);
  GdbServer server(machine, monitors, connection,
                   [&](const std::string& reason) { console.warn(reason); });
  // gdb waits for its first answers no longer than for any: the way is gone when it asks for more.
  server.serve([&] { return seek_begin(lookers, machine, turns, begin_of(arguments)); });
  if (!connection.failure().empty()) throw IoError("the line to gdb: " + connection.failure());
}

std::string quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// The command by which gdb starts the server behind a pipe.
std::string server_command(const DebugArguments& arguments) {
  std::string command = quoted(std::filesystem::read_symlink("/proc/self/exe").string()) +
                        " debug --stdio --at " + quoted(arguments.at);
  if (!arguments.hints.empty()) command += " --hints " + quoted(arguments.hints);
  if (arguments.unchecked) command += " --unchecked";
  if (arguments.comparison.strict) command += " --strict";
  if (arguments.comparison.bit_changes) command += " --accept-bit-changes";
  return command + " -- " + quoted(arguments.recording);
}

/// Becomes gdb, which starts the server and ends it.
[[noreturn]] void become_gdb(const DebugArguments& arguments) {
  std::vector<std::string> words{
      arguments.gdb,
      // What takes long is not to be taken for a line that is down.
      "-iex", "set remotetimeout 3600",
      // After `monitor seek` registers are others than gdb remembers.
      "-iex",
      "python gdb.execute('define hookpost-monitor\\nmaintenance flush register-cache\\nend', "
      "to_string=True)",
      "-ex", "target remote | " + server_command(arguments)};
  words.insert(words.end(), arguments.gdb_arguments.begin(), arguments.gdb_arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw IoError(fmt::format(
      "{}: {} (Debian's package gdb has it; --stdio, --socket and --port serve another)",
      arguments.gdb, std::strerror(errno)));
}

// ---- a port, a socket
// -----------------------------------------------------------------

/// More sessions than this are turned away: each is a machine of its own in memory.
constexpr std::size_t kMostSessions = 16;
/// gdb speaks at once.
constexpr int kSilence = 10'000;

/// The exit status of the session's process.
int serve_client(const Debugged& debugged, const DebugArguments& arguments, int client,
                 const Console& console) {
  try {
    const std::string why = gdb::why_turned_away(client, kSilence);
    if (!why.empty()) {
      console.warn("a client was turned away: " + why);
      return static_cast<int>(ExitCode::usage);
    }
    serve(debugged, arguments, client, client, console);
  } catch (const std::exception& error) {
    console.error(error.what());
    return static_cast<int>(ExitCode::system);
  }
  return 0;
}

/// Serves until Ctrl-C.
void listen(const Debugged& debugged, const DebugArguments& arguments, gdb::Listener& listener,
            const Console& console) {
  console.print(listener.address() + "\n");
  console.flush();
  console.note("gdb: target remote " + listener.address());
  Sessions sessions(kMostSessions);
  bool said_full = false;
  for (;;) {
    const bool comes = sessions.wait(listener.descriptor());
    check_interrupt();
    const int client = comes ? listener.accept() : -1;
    if (client < 0) continue;
    if (!sessions.full()) {
      sessions.begin([&] { return serve_client(debugged, arguments, client, console); });
      said_full = false;
    } else if (!std::exchange(said_full, true)) {
      console.warn(fmt::format("there are {} sessions: more are turned away", kMostSessions));
    }
    ::close(client);
  }
}

void listen(const Debugged& debugged, const DebugArguments& arguments, const Console& console) {
  // What ends the program leaves no socket behind.
  take_endings_for_interrupts();
  if (arguments.port) {
    gdb::Listener listener(*arguments.port);
    listen(debugged, arguments, listener, console);
  } else {
    gdb::Listener listener(arguments.socket);
    listen(debugged, arguments, listener, console);
  }
}

// ---- the command
// -----------------------------------------------------------------

void check(const DebugArguments& arguments) {
  const std::string at = begin_of(arguments).place;
  if (at != "begin" && at != "end" && at != "divergence" && !parse_position(at)) {
    throw UsageError("--at: expected a position N or N+K, begin, end or divergence, found '" + at +
                     "'");
  }
  const int ways =
      (arguments.stdio ? 1 : 0) + (arguments.port ? 1 : 0) + (arguments.socket.empty() ? 0 : 1);
  if (ways > 1) throw UsageError("--stdio, --socket and --port exclude each other");
  if (ways != 0 && !arguments.gdb_arguments.empty()) {
    throw UsageError(
        "with --stdio, --socket or --port citcat starts no gdb, so it cannot pass arguments to "
        "one");
  }
  if (!arguments.listens() && is_once_input(arguments.recording)) {
    throw UsageError(arguments.recording +
                     ": gdb uses the standard input, and the server that gdb starts cannot read a "
                     "pipe again: use --socket or --port, or a file");
  }
}

ExitCode run_debug(DebugArguments arguments, const Console& console) {
  arguments.recording = arguments.processor.name(arguments.recording);
  check(arguments);
  if (arguments.processor.number) {
    const ProcessorPlace begin = begin_of(arguments);
    if (begin.processor.value_or(*arguments.processor.number) != *arguments.processor.number) {
      throw UsageError(fmt::format("--at {}: processor {} is asked for", arguments.at,
                                   *arguments.processor.number));
    }
    arguments.at = begin.place;
  }
  if (!arguments.stdio && !arguments.listens()) {
    // What is wrong with the file is said here, not behind gdb.
    for (const std::string& name : names_of_processors(arguments.recording))
      open_with_hints(name, arguments.hints);
    become_gdb(arguments);
  }
  signal(SIGPIPE, SIG_IGN);
  const Debugged debugged = open_debugged(arguments, console);
  if (arguments.listens()) {
    listen(debugged, arguments, console);
  } else {
    // Ctrl-C at the terminal is gdb's, which says so by the protocol.
    signal(SIGINT, SIG_IGN);
    serve(debugged, arguments, STDIN_FILENO, STDOUT_FILENO, console);
  }
  return ExitCode::ok;
}

CommandRun define_debug(const CommandParser& parser) {
  auto arguments = std::make_shared<DebugArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to debug").required();
  arguments->processor.define(parser);
  parser.add_option("GDB_ARGUMENTS", arguments->gdb_arguments, "Arguments for gdb, after --");
  define_moment(parser, arguments->at);
  parser.add_flag("--stdio", arguments->stdio,
                  "Serve on standard input and output: target remote | citcat debug REC --stdio");
  parser.add_option("--socket", arguments->socket,
                    "Serve on a socket at this path, which only you can open: target remote PATH");
  parser.add_option("--port", arguments->port,
                    "Serve on this port of the loopback address; 0: a free one");
  parser.add_option("--gdb", arguments->gdb, "The gdb to start").show_default();
  define_hints(parser, arguments->hints);
  define_comparison(parser, arguments->comparison);
  define_unchecked(parser, arguments->unchecked);
  return [arguments](const Console& console) { return run_debug(*arguments, console); };
}

}  // namespace

extern const Command kDebugCommand{
    "debug", "Debug a recorded machine with gdb, forwards and backwards",
    "citcat debug boot.citcat --at end\n"
    "citcat debug boot.citcat -- vmlinux -ex 'break do_exit' -ex continue\n"
    "gdb -ex 'target remote | citcat debug boot.citcat --stdio'",
    define_debug};

}  // namespace citcat
