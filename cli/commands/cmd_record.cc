// Runs an emulator with the bus monitor inside and keeps what it sends. The files are written here,
// not in the emulator, so that what it has sent is not lost if it crashes.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/import/import.h"
#include "capture/processors/machine_import.h"
#include "cli/command.h"
#include "cli/commands/recording_symbols.h"
#include "cli/interrupt.h"
#include "cli/parsing/command_description.h"
#include "cli/record/adapted_command.h"
#include "cli/record/emulator_command.h"
#include "cli/record/emulator_program.h"
#include "cli/record/interrupt_log_file.h"
#include "cli/record/live_recording.h"
#include "cli/record/live_session.h"
#include "cli/record/monitor_receiver.h"
#include "cli/record/output_lock.h"
#include "cli/record/recorded_emulator.h"
#include "cli/record/repetition_watch.h"
#include "cli/record/side_file.h"
#include "cli/record/symbol_trigger.h"
#include "events/names/symbol_file.h"
#include "formats/io/error.h"
#include "monitor/options/trigger.h"
#include "tools/host/own_side_file.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

void check_trigger(const char* option, const std::string& text) {
  if (monitor::parse_trigger(text)) return;
  throw UsageError(
      fmt::format("{}: expected driver, reset, address:HEX, symbol:NAME, process:NAME, exit:NAME, "
                  "port:HEX[=HEX], count:N or console:TEXT, found {}",
                  option, text));
}

/// Instructions that are going to be recorded; 0: not known.
std::uint64_t expected_instructions(const RecordArguments& arguments) {
  const auto stop = monitor::parse_trigger(arguments.stop);
  return stop && stop->kind == monitor::Trigger::Kind::count ? stop->number : 0;
}

/// An emulator that was asked to end and has not after so long will not.
constexpr std::chrono::seconds kPatience{20};

/// Receives until the emulator is gone. Ctrl-C, SIGTERM and SIGHUP ask it to stop; what it has sent
/// is still taken. Returns whether one of them came. `watch`: of a repeated run.
bool receive_all(MonitorReceiver& receiver, const RecordedEmulator& emulator, Pipe& data,
                 Pipe& control, InterruptLogFile& log, const std::string& changes,
                 const RepetitionWatch* watch, Progress& progress) {
  constexpr int kTrimmedEvery = 100;  // milliseconds
  Clock::time_point trimmed = Clock::now();
  std::optional<Clock::time_point> stopped;
  pollfd ends[2] = {{data.read.value(), POLLIN, 0}, {control.read.value(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends, 2, kTrimmedEvery) < 0 && errno != EINTR) throw IoError(system_message("poll"));
    if (Clock::now() - trimmed >= std::chrono::milliseconds(kTrimmedEvery)) {
      log.trim();
      if (!changes.empty() && is_nearly_full(changes)) receiver.end_for_full(changes);
      trimmed = Clock::now();
    }
    if (!stopped && (interrupt_requested() || receiver.disk_full())) {
      stopped = Clock::now();
      emulator.stop();
    }
    const bool is_stuck = watch != nullptr && watch->stopped_at();
    if (is_stuck || (stopped && Clock::now() - *stopped > kPatience)) emulator.kill();
    if (ends[0].revents != 0 && !receiver.take_data(ends[0].fd)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !receiver.take_control(ends[1].fd)) ends[1].fd = -1;
    for (pollfd& end : ends) end.revents = 0;
    progress.show(receiver.instructions());
  }
  return interrupt_requested();
}

/// The monitor's reasons for an end without a trigger: a triple fault, or any other.
bool emulator_ended(std::string_view reason) { return reason == "shutdown" || reason == "exit"; }

/// Whether something is to end the recording but the emulator's end.
bool awaits_trigger(const RecordArguments& arguments) {
  return !arguments.stop.empty() || arguments.start == "driver";
}

/// `by_hand`: somebody pressed Ctrl-C while it ran.
Ending ending_of(const RecordArguments& arguments, const MonitorReceiver& receiver, bool by_hand) {
  if (receiver.disk_full()) return Ending::storage_full;
  if (receiver.failed()) return Ending::monitor_failed;
  const auto& totals = receiver.totals();
  if (!totals.empty() && !emulator_ended(totals.at("reason"))) return Ending::capture_end;
  if (by_hand) return Ending::by_hand;
  // Without a trigger to wait for, the emulator's orderly end is the end that was asked for.
  return totals.empty() || awaits_trigger(arguments) ? Ending::source_gone : Ending::capture_end;
}

/// The capture that becomes the recording `output`: beside it, until it is one.
RecordArguments with_capture_names(RecordArguments arguments) {
  // What several processors share has no stored form of its own.
  if (makes_recording(arguments.output))
    arguments.output += arguments.processors == 1 ? ".binz" : ".bin.zst";
  if (arguments.internal.empty()) arguments.internal = side_file_name(arguments.output);
  return arguments;
}

/// The files of values that cross no bus: one for each processor.
std::vector<std::string> internal_files(const RecordArguments& capture) {
  if (capture.processors == 1) return {capture.internal};
  std::vector<std::string> files;
  for (unsigned p = 0; p < capture.processors; ++p)
    files.push_back(side_file_of(capture.internal, p));
  return files;
}

/// The options of `import` that name them, and what it cannot know of the capture.
std::string options_of_import(const RecordArguments& capture) {
  const std::vector<std::string> files = internal_files(capture);
  std::string text;
  const bool beside = files.size() == 1 && files.front() == side_file_name(capture.output);
  if (files.size() == 1) return text + (beside ? "" : " --internal " + files.front());
  for (std::size_t p = 0; p < files.size(); ++p)
    text += fmt::format(" --internal {}={}", p, files[p]);
  return text;
}

/// The files of a capture to which the user has given no names of their own.
std::vector<std::string> unnamed_files(const RecordArguments& capture,
                                       const RecordArguments& given) {
  std::vector<std::string> files;
  if (makes_recording(given.output)) files.push_back(capture.output);
  if (!given.internal.empty()) return files;
  for (std::string& file : internal_files(capture)) files.push_back(std::move(file));
  return files;
}

/// Throws IoError where one of them is there already: what an import that failed has left, or
/// somebody else's.
void refuse_what_is_there(const RecordArguments& capture, const RecordArguments& given) {
  std::error_code ignored;
  for (const std::string& path : unnamed_files(capture, given)) {
    if (!makes_recording(given.output))
      require_own_side_file(capture.output, path);
    else if (fs::exists(fs::symlink_status(path, ignored)))
      throw IoError(fmt::format(
          "{}: exists already, from a recording that was not imported; import it (citcat import {} "
          "-o FILE.citcat) or remove it",
          path, capture.output));
  }
}

/// What the recording is made of, which nobody needs when it is there.
void remove_capture(const RecordArguments& capture, const RecordArguments& given) {
  for (const std::string& path : unnamed_files(capture, given)) {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

/// The file that has the names of the kernel that the emulator starts; empty: there is none.
std::string symbols_of(const RecordArguments& arguments) {
  const auto kernel = option_value(arguments.command, "kernel");
  return kernel ? find_kernel_symbols(*kernel) : "";
}

/// The names of what is recorded: those of the files that were named, else of the kernel.
std::vector<SymbolModule> names_of(const RecordArguments& arguments) {
  if (!arguments.symbols.empty()) return load_symbols(arguments.symbols);
  const std::string kernel = symbols_of(arguments);
  return kernel.empty() ? std::vector<SymbolModule>{} : load_symbols(std::vector{kernel});
}

/// The command line with addresses in place of symbols, and checked.
RecordArguments with_places(RecordArguments arguments) {
  // Names of a whole kernel take a moment: not where nobody asks for them.
  if (is_symbol_trigger(arguments.start) || is_symbol_trigger(arguments.stop)) {
    const std::vector<SymbolModule> names = names_of(arguments);
    arguments.start = with_address("--start", arguments.start, names);
    arguments.stop = with_address("--stop", arguments.stop, names);
  }
  check_trigger("--start", arguments.start);
  if (!arguments.stop.empty()) check_trigger("--stop", arguments.stop);
  return arguments;
}

/// Makes the recording `output` of the capture, with names, and says how to do it by hand where
/// that fails.
ImportResult import_recorded(const RecordArguments& capture, const std::string& output,
                             const Console& console) {
  Progress progress = console.progress("importing", "transactions");
  ImportOptions options;
  options.progress = [&progress](std::uint64_t done) { progress.update(done); };
  try {
    ImportResult result;
    if (capture.processors > 1) {
      result = import_machine({capture.output}, {options, internal_files(capture)}, output).all;
    } else {
      options.capture.internal_path = capture.internal;
      result = import_capture({capture.output}, options, output);
    }
    for (const std::string& text : result.warnings) console.warn(text);
    const std::vector<SymbolModule> names = names_of(capture);
    if (!names.empty()) add_symbols(names, output, console);
    return result;
  } catch (const Error&) {
    console.note(fmt::format("the capture is {}: citcat import {}{} -o {}", capture.output,
                             capture.output, options_of_import(capture), output));
    throw;
  }
}

/// `arguments` are those of the command line where the recording was made, else name the capture.
void print_result(const RecordArguments& arguments, const MonitorReceiver& receiver, double seconds,
                  const std::optional<ImportResult>& recording, const Console& console) {
  const std::string symbols = symbols_of(arguments);
  const auto& totals = receiver.totals();
  const auto number = [&totals](const char* key) -> std::uint64_t {
    const auto it = totals.find(key);
    return it == totals.end() ? 0 : std::strtoull(it->second.c_str(), nullptr, 10);
  };
  const std::string reason = receiver.disk_full()        ? "disk full"
                             : totals.contains("reason") ? totals.at("reason")
                                                         : "lost";
  const bool counted = !totals.empty() && !receiver.disk_full();
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["output"] = arguments.output;
    json["internal"] = nullptr;
    const std::vector<std::string> internal = internal_files(arguments);
    if (!recording && internal.size() > 1) json["internal"] = internal;
    if (!recording && internal.size() == 1) json["internal"] = internal.front();
    if (internal.size() > 1) json["processors"] = internal.size();
    json["symbols"] = nullptr;
    if (!symbols.empty()) json["symbols"] = symbols;
    json["records"] = receiver.records();
    json["instructions"] = nullptr;
    if (counted) json["instructions"] = number("instructions");
    json["interrupts"] = number("interrupts");
    json["exceptions"] = number("exceptions");
    json["software_interrupts"] = number("software_interrupts");
    json["external_changes"] = number("external_changes");
    json["seconds"] = seconds;
    json["end"] = reason;
    json["recording"] = recording.has_value();
    console.print_json(json);
    return;
  }
  if (counted) {
    console.print_line(fmt::format(
        "{}: {} instructions, {} bus records, {} interrupts, {} exceptions", arguments.output,
        number("instructions"), receiver.records(), number("interrupts"), number("exceptions")));
  } else {
    console.print_line(fmt::format("{}: {} bus records, until the recording ended early",
                                   arguments.output, receiver.records()));
  }
  if (recording) {
    console.print_line(fmt::format("next: citcat verify {}", arguments.output));
    return;
  }
  console.print_line(fmt::format("next: citcat import {}{}{} -o RECORDING.citcat", arguments.output,
                                 options_of_import(arguments),
                                 symbols.empty() ? "" : " --symbols " + symbols));
}

/// What came of the emulator: its capture is complete.
struct Captured {
  bool any = false;          ///< something was recorded
  bool interrupted = false;  ///< somebody asked to end it
  std::string how;           ///< the emulator ended; "" in order
  double seconds = 0;
};

/// How a repeated run ended, with what that means where it did not follow the session's log: QEMU
/// then waits without end, or ends itself with SIGABRT.
std::string explained_end(const RecordArguments& capture, const RepetitionWatch& watch,
                          const std::string& how) {
  const auto stopped = watch.stopped_at();
  if (!stopped && how.find(strsignal(SIGABRT)) == std::string::npos) return how;
  return fmt::format(
      "{}: the repeated run has gone another way than the session, because QEMU does not repeat "
      "what a device of this machine did; make the session {}with other devices",
      stopped ? fmt::format("waits without end at instruction {} of the session", *stopped) : how,
      capture.taken_up_at != 0 ? "without --keep, or " : "");
}

Captured capture_bus(const RecordArguments& capture, MonitorReceiver& receiver,
                     const Console& console) {
  InterruptLogFile log;
  Pipe data, control;
  auto command = monitored_command(capture, log.path(), data.write.value(), control.write.value());
  std::optional<RepetitionWatch> watch;
  if (capture.repeats) {
    const auto options = watch.emplace().options();
    command.insert(command.end(), options.begin(), options.end());
  }
  const auto begin = Clock::now();
  Captured result;
  RecordedEmulator emulator(command, data, control, log.descriptor(),
                            watch ? watch->emulators_end() : -1);
  if (watch) watch->begin();
  {
    // A guest's console on this terminal is not written over.
    const Console& shown = uses_terminal(capture.command) ? Console(true) : console;
    Progress progress = shown.progress("recording", "instructions", expected_instructions(capture));
    result.interrupted = receive_all(receiver, emulator, data, control, log, capture.changes,
                                     watch ? &*watch : nullptr, progress);
  }
  result.how = emulator.wait();
  if (watch) result.how = explained_end(capture, *watch, result.how);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.any = receiver.finish(ending_of(capture, receiver, result.interrupted));
  return result;
}

ExitCode nothing_recorded(const RecordArguments& arguments, const MonitorReceiver& receiver,
                          const Captured& captured, const Console& console) {
  if (captured.interrupted) return ExitCode::interrupted;
  if (receiver.disk_full())
    throw IoError(receiver.full_file() + ": the disk is full; nothing was recorded");
  if (!captured.how.empty())
    throw IoError(fmt::format("{} {}", arguments.command[0], captured.how));
  if (receiver.failed()) return ExitCode::system;
  const std::string words = option_value(arguments.command, "append").value_or("nokaslr");
  const bool may_move =
      arguments.start.starts_with("address:") && words.find("nokaslr") == words.npos;
  console.warn(
      fmt::format("nothing was recorded: the start trigger '{}' never came{}", arguments.start,
                  may_move ? "; Linux places itself at random without nokaslr in -append" : ""));
  return ExitCode::answer_is_no;
}

/// Throws IoError where less was recorded than was asked for.
void require_all_recorded(const RecordArguments& arguments, const MonitorReceiver& receiver,
                          const Captured& captured) {
  if (receiver.disk_full())
    throw IoError(
        fmt::format("{}: the disk is full; the recording was stopped there and is complete "
                    "up to its last record, number {}",
                    receiver.full_file(), receiver.records()));
  if (captured.interrupted) return;
  if (receiver.failed())
    throw IoError(
        fmt::format("the recording ended early, where the monitor cannot go on; {} holds the {} "
                    "bus records up to there",
                    arguments.output, receiver.records()));
  if (receiver.totals().empty()) {
    throw IoError(
        fmt::format("the recording ended early: {} {}; {} holds the {} bus records it "
                    "sent until then",
                    arguments.command[0], captured.how.empty() ? "stopped" : captured.how,
                    arguments.output, receiver.records()));
  }
}

/// Puts a display that every emulator has in the place of a window that this one has not.
void replace_absent_display(AdaptedCommand& adapted, const std::string& program) {
  for (std::size_t n = 1; n + 1 < adapted.command.size(); ++n) {
    if (adapted.command[n] != "-display" && adapted.command[n] != "--display") continue;
    std::string& value = adapted.command[n + 1];
    const std::string kind = value.substr(0, value.find(','));
    const bool is_window = kind == "gtk" || kind == "sdl" || kind == "spice-app" || kind == "dbus";
    if (!is_window || has_display(program, kind)) continue;
    const char* const kEverywhere = "vnc=localhost:0,to=99";
    adapted.changes.push_back(
        fmt::format("-display {}: -display {} in its place, since {} has no such display; a viewer "
                    "of VNC shows it",
                    value, kEverywhere, program));
    value = kEverywhere;
  }
}

/// The command line as it can be recorded. Says what it changes; with --exact it throws UsageError
/// instead.
RecordArguments as_recordable(RecordArguments arguments, const Console& console) {
  if (arguments.command.empty())
    throw UsageError("the emulator's command line is missing, after --");
  bool chosen = false;
  if (arguments.start.empty()) {
    arguments.start = likely_start(arguments.command, arguments.stop);
    chosen = true;
  }
  // The driver's dump is of the processor that it runs on, QEMU's log of one machine with one.
  const unsigned most = arguments.live || arguments.start == "driver" ? 1 : kMostRecordedProcessors;
  AdaptedCommand adapted = adapted_command(arguments.command, most);
  EmulatorProgram program = find_emulator(adapted.command[0]);
  if (!program.change.empty()) adapted.changes.push_back(program.change);
  replace_absent_display(adapted, program.path);
  if (arguments.exact && !adapted.changes.empty())
    throw UsageError(fmt::format("--exact: the command line cannot be recorded as it is: {}",
                                 fmt::join(adapted.changes, "; ")));
  for (const std::string& change : adapted.changes) console.note(change);
  arguments.command = std::move(adapted.command);
  arguments.command[0] = std::move(program.path);
  arguments.processors = adapted.processors;
  if (arguments.output.empty())
    arguments.output = arguments.live ? default_session() : default_recording();
  if (chosen && !arguments.live) {
    console.note(fmt::format("--start {}: the recording begins there, because no --start was given",
                             arguments.start));
  }
  check_command(arguments);
  return arguments;
}

ExitCode record_bus(const RecordArguments& arguments, const Console& console) {
  if (arguments.output == "-") {
    throw UsageError("-o: expected a file, with another beside it for values that cross no bus");
  }
  if (is_record_store(arguments.output) && arguments.processors > 1)
    throw UsageError(arguments.output +
                     ": .binz holds the records of one processor only; write -o FILE.bin.zst");
  const RecordArguments capture = with_capture_names(arguments);
  // First of all: a full disk has no room for a lock either.
  if (const auto full = nearly_full({capture.output, capture.internal}))
    throw IoError(fmt::format("{}: {} MiB are free there and {} MiB are needed to begin", *full,
                              free_space(*full) >> 20, kDiskReserve >> 20));
  const OutputLock lock(arguments.output);
  refuse_what_is_there(capture, arguments);
  take_endings_for_interrupts();
  MonitorReceiver receiver(capture, console);
  const Captured captured = capture_bus(capture, receiver, console);
  if (!captured.any) return nothing_recorded(arguments, receiver, captured, console);
  // What was asked to end has ended: from here on the next request counts.
  acknowledge_interrupt();
  std::optional<ImportResult> recording;
  if (makes_recording(arguments.output) && !receiver.disk_full()) {
    recording = import_recorded(capture, arguments.output, console);
    remove_capture(capture, arguments);
  }
  print_result(recording ? arguments : capture, receiver, captured.seconds, recording, console);
  require_all_recorded(recording ? arguments : capture, receiver, captured);
  if (captured.interrupted) return ExitCode::interrupted;
  const std::string& reason = receiver.totals().at("reason");
  if (emulator_ended(reason))
    console.note(
        fmt::format("{}the emulator ended{}; the recording goes up to there",
                    reason == "shutdown" ? "a triple fault shut the processor down, and " : "",
                    awaits_trigger(arguments) ? " before the stop trigger" : ""));
  return ExitCode::ok;
}

/// Records a window of a session. A command line names the emulator, where the session's own is
/// elsewhere.
ExitCode record_from(RecordArguments arguments, const LiveSession& session,
                     const Console& console) {
  const std::string named =
      arguments.command.empty() ? session.command[0] : arguments.command.front();
  if (arguments.command.size() > 1)
    throw UsageError("--from: expected nothing but an emulator after --: the session has the rest");
  const std::string program = find_emulator(named).path;
  check_session(session, program);
  if (arguments.start.empty()) {
    const std::uint64_t first = session.beginning().instructions;
    arguments.start =
        first != 0 ? fmt::format("count:{}", first) : likely_start(session.command, arguments.stop);
    console.note(fmt::format("--start {}: the recording begins there, because no --start was given",
                             arguments.start));
  }
  if (arguments.output.empty()) arguments.output = default_recording();
  arguments.command = session.command;  // with the kernel whose names triggers may have
  arguments = with_places(std::move(arguments));
  const RepeatedRun run(session, program, arguments.start);
  arguments.command = run.command();
  arguments.taken_up_at = run.instructions();
  arguments.changes = run.changes();
  arguments.repeats = true;
  return record_bus(arguments, console);
}

/// "512M", "2G".
std::uint64_t bytes_to_keep(const std::string& text) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const std::string_view unit(result.ptr, static_cast<std::size_t>(end - result.ptr));
  const std::string_view units = "KMGT";
  const std::size_t scale = unit.size() == 1 ? units.find(unit[0]) : std::string_view::npos;
  const unsigned shift =
      scale == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(scale) + 1);
  if (result.ec != std::errc{} || shift == 0 || value > (UINT64_MAX >> (shift + 1)) ||
      value << shift < kLeast)
    throw UsageError(
        fmt::format("--keep: expected a size of at least 64M, such as 512M or 2G, found {}", text));
  return value << shift;
}

/// Throws UsageError for options of the two stages that contradict each other.
void check_stages(const RecordArguments& arguments) {
  if (arguments.list && arguments.from.empty()) throw UsageError("--list: expected --from SESSION");
  if (arguments.keep != 0 && !arguments.live)
    throw UsageError("--keep: expected --live, with a session of which the last part is kept");
  if (!arguments.live) return;
  if (!arguments.from.empty())
    throw UsageError("--live makes a session, --from repeats one: expected one of the two");
  if (!arguments.start.empty())
    throw UsageError("--live: a session has no --start; give it to record --from SESSION");
  const auto stop = monitor::parse_trigger(arguments.stop);
  if (!arguments.stop.empty() && (!stop || stop->kind != monitor::Trigger::Kind::console))
    throw UsageError(fmt::format(
        "--live: --stop: a session ends by itself or with console:TEXT, found {}; give other "
        "triggers to record --from SESSION",
        arguments.stop));
}

ExitCode run_record(const RecordArguments& given, const Console& console) {
  check_stages(given);
  if (given.live) return record_live(as_recordable(given, console), console);
  if (given.from.empty()) return record_bus(with_places(as_recordable(given, console)), console);
  const LiveSession session = open_session(given.from);
  if (!given.list) return record_from(given, session, console);
  list_session(session, given.json, console);
  return ExitCode::ok;
}

CommandRun define_record(const CommandParser& parser) {
  auto arguments = std::make_shared<RecordArguments>();
  auto keep = std::make_shared<std::string>();
  parser
      .add_option(
          "-o,--output", arguments->output,
          "Recording to make (.citcat), or capture to write (.bin, .bin.zst, .binz), or session "
          "(--live); default: recording.citcat, with --live live.session, or recording-2.citcat "
          "and so on")
      .type_name(kFileType);
  parser
      .add_option("--internal", arguments->internal,
                  "File for values that cross no bus, such as RDTSC's (default: beside the "
                  "capture, .side.csv)")
      .type_name(kFileType);
  parser
      .add_option("--cache", arguments->cache,
                  "Cache between processor and monitor (default: i486)")
      .one_of({"none", "i486", "write-back", "pentium"});
  parser.add_option("--start", arguments->start,
                    "What starts the recording: driver, reset, address:HEX, symbol:NAME, "
                    "process:NAME, exit:NAME, port:HEX[=HEX], count:N or console:TEXT");
  parser.add_option("--stop", arguments->stop,
                    "What stops it, as for --start, besides the driver's stop marker; count:N "
                    "counts recorded instructions");
  parser
      .add_option("--symbols", arguments->symbols,
                  "Names for symbol:NAME, given as for import; a recording keeps them, too "
                  "(default: those of the kernel that -kernel starts); may be repeated")
      .type_name(kFileType)
      .repeated();
  parser.add_flag("--exact", arguments->exact,
                  "Refuse a command line that must be changed to be recorded");
  parser.add_flag("--live", arguments->live,
                  "Run the machine at the emulator's speed and keep a session (-o, a folder) that "
                  "can be recorded later");
  parser
      .add_option("--from", arguments->from,
                  "Record a window of this session, from --start to --stop")
      .type_name("FOLDER");
  parser.add_flag(
      "--list", arguments->list,
      "Print what is in the session: the machine, and the lines of its console with their times");
  parser
      .add_option("--keep", *keep,
                  "With --live: keep only the last part of the session, in about SIZE bytes (512M, "
                  "2G)")
      .type_name("SIZE");
  parser.add_flag("--quit-at-stop", arguments->quit, "Shut the emulator down when recording stops");
  parser.add_option("--monitor", arguments->monitor, "The monitor plugin, citcat-monitor.so")
      .type_name(kFileType);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  parser.add_option("COMMAND", arguments->command, "The emulator and its options, after --");
  return [arguments, keep](const Console& console) {
    if (!keep->empty()) arguments->keep = bytes_to_keep(*keep);
    return run_record(*arguments, console);
  };
}

}  // namespace

extern const Command kRecordCommand{
    "record", "Record the bus of a machine that QEMU emulates",
    "citcat record -o boot.citcat -- qemu-system-i386 -m 128 -kernel vmlinuz.img", define_record};

}  // namespace citcat
