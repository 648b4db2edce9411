#include "cli/record/live_recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/interrupt.h"
#include "cli/record/console_relay.h"
#include "cli/record/emulator_program.h"
#include "cli/record/emulator_words.h"
#include "cli/record/live_command.h"
#include "cli/record/monitor_receiver.h"
#include "cli/record/output_lock.h"
#include "cli/record/recorded_emulator.h"
#include "cli/record/replay_log.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// A folder that goes again unless it becomes a session.
class UnfinishedSession {
 public:
  explicit UnfinishedSession(std::string output)
      : output_(std::move(output)), folder_(fmt::format("{}.citcat-{}", output_, getpid())) {
    std::error_code error;
    if (!fs::create_directory(folder_, error))
      throw IoError(fmt::format("{}: {}", folder_, error ? error.message() : "is there already"));
  }
  ~UnfinishedSession() {
    std::error_code ignored;
    if (!finished_) fs::remove_all(folder_, ignored);
  }
  UnfinishedSession(const UnfinishedSession&) = delete;
  UnfinishedSession& operator=(const UnfinishedSession&) = delete;

  const std::string& folder() const { return folder_; }
  void finish() {
    std::error_code error;
    fs::rename(folder_, output_, error);
    if (error) throw IoError(fmt::format("{}: {}", output_, error.message()));
    finished_ = true;
  }

 private:
  std::string output_, folder_;
  bool finished_ = false;
};

/// How a run ended.
struct LiveRun {
  std::string how;  ///< of the emulator; "" in order
  bool asked = false, full = false;
  double seconds = 0;
};

LiveRun run_machine(const LiveSession& session, bool reads_input) {
  constexpr std::chrono::milliseconds kLook{100};
  constexpr std::chrono::seconds kPatience{20};
  std::vector<std::string> command = session.command;
  command.insert(command.end(), {"-icount", fmt::format("{},rr=record,rrfile={}", session.clock,
                                                        escaped(session.log()))});
  LiveRun run;
  const Clock::time_point begin = Clock::now();
  std::optional<ConsoleRelay> relay;
  if (reads_input) relay.emplace();
  RecordedEmulator emulator(command, relay ? relay->input() : -1);
  if (relay) relay->begin();
  std::optional<Clock::time_point> stopped;
  while (!emulator.has_ended(kLook)) {
    run.full = run.full || is_nearly_full(session.log());
    run.asked = run.asked || interrupt_requested() || (relay && relay->asks_end());
    if (!stopped && (run.full || run.asked)) {
      stopped = Clock::now();
      emulator.stop();
    }
    if (stopped && Clock::now() - *stopped > kPatience) emulator.kill();
  }
  run.how = emulator.wait();
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return run;
}

/// Throws IoError for a log that nobody can repeat to its end.
ReplayLog checked_log(const LiveSession& session, const LiveRun& run) {
  std::error_code error;
  if (!fs::exists(session.log(), error))
    throw IoError(fmt::format("{} {}; there is no session", session.command[0],
                              run.how.empty() ? "ended without a log" : run.how));
  ReplayLog log = read_replay_log(session.log());
  if (log.understood && log.complete) return log;
  if (!run.how.empty() || log.understood)
    throw IoError(
        fmt::format("{} {}; its log is whole only when it ends in order, so there is no session",
                    session.command[0], run.how.empty() ? "did not end its log" : run.how));
  return log;  // of a QEMU whose events are others
}

/// The guest's console by lines, each with the instructions before its last byte.
struct ConsoleLine {
  std::string text;
  std::optional<std::uint64_t> instructions;
};

std::vector<ConsoleLine> console_lines(const LiveSession& session, const ReplayLog& log) {
  std::ifstream file(session.console(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t sent = 0;
  for (const ReplayLog::Sent& one : log.sent) sent += one.bytes;
  // With more ports than one nobody knows which byte is whose.
  const bool placed = sent == text.size();
  std::vector<ConsoleLine> lines;
  std::size_t event = 0;
  std::uint64_t behind = 0;  // bytes up to and with that event's
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    ConsoleLine line;
    for (std::size_t n = at; n <= end; ++n)
      if (text[n] != '\r' && text[n] != '\n') line.text += text[n];
    while (placed && event < log.sent.size() && behind <= end) behind += log.sent[event++].bytes;
    if (placed && event > 0) line.instructions = log.sent[event - 1].instructions;
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

std::string place_text(const std::optional<std::uint64_t>& instructions) {
  return instructions ? fmt::format("{:>14}", *instructions) : fmt::format("{:>14}", "?");
}

}  // namespace

ExitCode record_live(const RecordArguments& arguments, const Console& console) {
  const OutputLock lock(arguments.output);
  std::error_code error;
  if (fs::exists(fs::symlink_status(arguments.output, error)))
    throw IoError(arguments.output + ": is there already; a session replaces nothing");
  if (is_nearly_full(arguments.output))
    throw IoError(fmt::format("{}: {} MiB are free there and {} MiB are needed to begin",
                              arguments.output, free_space(arguments.output) >> 20,
                              kDiskReserve >> 20));
  UnfinishedSession unfinished(fs::absolute(arguments.output).string());
  LiveSession session;
  session.folder = unfinished.folder();
  session.version = emulator_banner(arguments.command[0]);
  session.clock = live_clock(arguments.command);
  LiveCommand live = live_command(arguments.command, session.console());
  session.command = std::move(live.command);
  for (const std::string& change : live.changes) console.note(change);
  session.images = hashed_images(live.images);
  take_endings_for_interrupts();
  const LiveRun run = run_machine(session, live.reads_input);
  const ReplayLog log = checked_log(session, run);
  acknowledge_interrupt();
  write_session(session);
  unfinished.finish();
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["session"] = arguments.output;
    json["instructions"] = log.instructions;
    json["seconds"] = run.seconds;
    json["end"] = run.full ? "disk full" : run.asked ? "asked" : "emulator";
    console.print_json(json);
  } else {
    console.print_line(
        fmt::format("{}: {} instructions in {:.1f} s, {} packets, {} requests of disks, {} inputs",
                    arguments.output, log.instructions, run.seconds, log.packets, log.disk_requests,
                    log.typed.size() + log.keys));
    console.print_line(fmt::format("next: citcat record --from {} --list", arguments.output));
  }
  if (!run.full) return ExitCode::ok;
  throw IoError(
      fmt::format("{}: the disk is full; the session ends there and is whole", arguments.output));
}

void list_session(const LiveSession& session, bool as_json, const Console& console) {
  const ReplayLog log = read_replay_log(session.log());
  const std::vector<ConsoleLine> lines = console_lines(session, log);
  if (as_json) {
    nlohmann::ordered_json json;
    json["session"] = session.folder;
    json["emulator"] = session.version;
    json["command"] = session.command;
    json["instructions"] = log.instructions;
    json["console"] = nlohmann::ordered_json::array();
    for (const ConsoleLine& line : lines) {
      nlohmann::ordered_json one;
      one["instructions"] = nullptr;
      if (line.instructions) one["instructions"] = *line.instructions;
      one["text"] = printable(line.text);
      json["console"].push_back(std::move(one));
    }
    json["typed"] = nlohmann::ordered_json::array();
    for (const ReplayLog::Typed& one : log.typed)
      json["typed"].push_back({{"instructions", one.instructions}, {"text", printable(one.text)}});
    console.print_json(json);
    return;
  }
  console.print_line(fmt::format("emulator      {}", session.version));
  console.print_line(fmt::format("machine       {}", fmt::join(session.command, " ")));
  for (const LiveSession::Image& image : session.images)
    console.print_line(fmt::format("image         {} ({} bytes)", image.path, image.bytes));
  console.print_line(fmt::format("instructions  {}", log.instructions));
  console.print_line(
      fmt::format("inputs        {} of serial ports, {} of keyboard and mouse, {} "
                  "packets, {} requests of disks",
                  log.typed.size(), log.keys, log.packets, log.disk_requests));
  console.print_line("instructions   what the guest sent to its first serial port by then");
  for (const ConsoleLine& line : lines)
    console.print_line(place_text(line.instructions) + " " + printable(line.text));
}

std::vector<std::string> repeating_command(const LiveSession& session, const std::string& program) {
  std::vector<std::string> command = repeated_command(session.command);
  command[0] = program;
  command.insert(command.end(), {"-icount", fmt::format("{},rr=replay,rrfile={}", session.clock,
                                                        escaped(session.log()))});
  return command;
}

}  // namespace citcat
