#include "cli/record/live_recording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/interrupt.h"
#include "cli/record/console_relay.h"
#include "cli/record/emulator_program.h"
#include "cli/record/emulator_words.h"
#include "cli/record/live_command.h"
#include "cli/record/monitor_receiver.h"
#include "cli/record/output_lock.h"
#include "cli/record/qcow2_file.h"
#include "cli/record/recorded_emulator.h"
#include "cli/record/replay_log.h"
#include "cli/record/session_keeper.h"
#include "formats/io/error.h"
#include "monitor/options/trigger.h"

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

/// Waits for a text on the guest's console.
class ConsoleWatch {
 public:
  ConsoleWatch(std::string path, std::string text)
      : path_(std::move(path)), text_(std::move(text)) {}

  bool has_come() {
    if (text_.empty() || came_) return came_;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at_));
    const std::string more{std::istreambuf_iterator<char>(file), {}};
    at_ += more.size();
    seen_ += more;
    came_ = seen_.find(text_) != std::string::npos;
    seen_.erase(0, seen_.size() - std::min(seen_.size(), text_.size() - 1));
    return came_;
  }

 private:
  std::string path_, text_, seen_;
  std::uint64_t at_ = 0;
  bool came_ = false;
};

/// The words for QEMU that nobody needs to repeat the run.
std::vector<std::string> live_words(const LiveSession& session, const SessionKeeper* keeper) {
  std::vector<std::string> command =
      with_kept_files(session.command, [&](OptionValue& drive, const std::string& name) {
        drive.set("file", session.folder + "/" + name);
      });
  command.insert(command.end(), {"-icount", fmt::format("{},rr=record,rrfile={}", session.clock,
                                                        escaped(session.log()))});
  if (keeper != nullptr) {
    command.emplace_back("-S");
    const std::vector<std::string> monitor = keeper->options();
    command.insert(command.end(), monitor.begin(), monitor.end());
  }
  return command;
}

LiveRun run_machine(const LiveSession& session, bool reads_input, const std::string& last_text,
                    SessionKeeper* keeper) {
  constexpr std::chrono::milliseconds kLook{100};
  constexpr std::chrono::seconds kPatience{20};
  LiveRun run;
  const Clock::time_point begin = Clock::now();
  std::optional<ConsoleRelay> relay;
  if (reads_input) relay.emplace();
  RecordedEmulator emulator(live_words(session, keeper), relay ? relay->input() : -1,
                            keeper != nullptr ? keeper->emulators_end() : -1);
  if (keeper != nullptr) keeper->begin();
  if (relay) relay->begin();
  std::optional<Clock::time_point> stopped;
  ConsoleWatch watch(session.console(), last_text);
  while (!emulator.has_ended(kLook)) {
    run.full = run.full || is_nearly_full(session.log());
    run.asked =
        run.asked || interrupt_requested() || (relay && relay->asks_end()) || watch.has_come();
    if (!stopped && (run.full || run.asked)) {
      stopped = Clock::now();
      emulator.stop();
    }
    // An emulator that does not answer is about to end, or never will.
    if (!stopped && keeper != nullptr && !keeper->look()) stopped = Clock::now();
    if (stopped && Clock::now() - *stopped > kPatience) emulator.kill();
  }
  run.how = emulator.wait();
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return run;
}

/// Reads the part of the log that is kept.
ReplayLog kept_log(const LiveSession& session) {
  return ReplayLogReader(session.log(), session.beginning()).read_on();
}

/// The log, with what is kept of it. Throws IoError for one that nobody can repeat to its end.
ReplayLog checked_log(const LiveSession& session, const LiveRun& run) {
  std::error_code error;
  if (!fs::exists(session.log(), error))
    throw IoError(fmt::format("{} {}; there is no session", session.command[0],
                              run.how.empty() ? "ended without a log" : run.how));
  ReplayLog log = kept_log(session);
  if (!run.how.empty() && log.understood && log.instructions == 0)
    throw IoError(fmt::format("{} {}; there is no session", session.command[0], run.how));
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

/// Reads the kept part of the guest's output. A window of QEMU first says its own name.
std::string console_text(const LiveSession& session) {
  constexpr std::string_view kWindow = "vc,id=citcat-console", kName = "citcat-console console\r\n";
  const bool window =
      std::any_of(session.command.begin(), session.command.end(),
                  [&](const std::string& word) { return word.starts_with(kWindow); });
  std::ifstream file(session.console(), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(session.beginning().sent + (window ? kName.size() : 0)));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<ConsoleLine> console_lines(const LiveSession& session, const ReplayLog& log) {
  const std::string text = console_text(session);
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

/// Later ones end with an assertion when they remove the state of a machine whose run they log: in
/// block/snapshot.c, since QEMU 10.1.
void check_keeps(const std::string& version) {
  constexpr std::pair kLast{10, 0};
  const auto found = emulator_version(version);
  if (found && *found > kLast)
    throw UsageError(
        fmt::format("--keep: expected QEMU 9.2 to 10.0, found {}.{}, which does not remove states "
                    "in a session; scripts/setup-monitor fetches one that does",
                    found->first, found->second));
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
  if (arguments.keep != 0) check_keeps(session.version);
  session.clock = live_clock(arguments.command);
  const bool keeps = arguments.keep != 0;
  LiveCommand live = live_command(arguments.command, session.console(), keeps);
  if (arguments.exact && !live.changes.empty() && keeps)
    throw UsageError(fmt::format("--exact: the session cannot be kept as it is: {}",
                                 fmt::join(live.changes, "; ")));
  session.command = std::move(live.command);
  for (const std::string& change : live.changes) console.note(change);
  session.images = hashed_images(live.images);
  for (const auto& [name, image] : live.kept_files) {
    const DiskImage below = image.empty() ? DiskImage{} : disk_image(image);
    write_qcow2(session.folder + "/" + name, below.bytes, image, below.is_qcow2);
  }
  take_endings_for_interrupts();
  std::optional<SessionKeeper> keeper;
  if (keeps) keeper.emplace(session, arguments.keep, console);
  const std::string last_text =
      arguments.stop.empty() ? "" : monitor::parse_trigger(arguments.stop)->text;
  const LiveRun run =
      run_machine(session, live.reads_input, last_text, keeper ? &*keeper : nullptr);
  if (keeper) {
    session.kept = keeper->finish();
    if (session.kept.empty())
      throw IoError(fmt::format("{} {}; there is no session", session.command[0],
                                run.how.empty() ? "ended before anything was kept" : run.how));
  }
  const ReplayLog log = checked_log(session, run);
  acknowledge_interrupt();
  write_session(session);
  unfinished.finish();
  if (arguments.json) {
    nlohmann::ordered_json json;
    json["session"] = arguments.output;
    json["instructions"] = log.instructions;
    if (keeps) json["kept_from"] = session.beginning().instructions;
    json["seconds"] = run.seconds;
    json["end"] = run.full ? "disk full" : run.asked ? "asked" : "emulator";
    console.print_json(json);
  } else {
    console.print_line(
        fmt::format("{}: {} instructions in {:.1f} s, {} packets, {} requests of disks, {} inputs",
                    arguments.output, log.instructions, run.seconds, log.packets, log.disk_requests,
                    log.typed.size() + log.keys));
    if (keeps)
      console.print_line(
          fmt::format("kept          from instruction {} on", session.beginning().instructions));
    console.print_line(fmt::format("next: citcat record --from {} --list", arguments.output));
  }
  if (keeps && !run.how.empty())
    throw IoError(fmt::format("{} {}; the session holds what was kept until then",
                              session.command[0], run.how));
  if (!run.full) return ExitCode::ok;
  throw IoError(
      fmt::format("{}: the disk is full; the session ends there and is whole", arguments.output));
}

void list_session(const LiveSession& session, bool as_json, const Console& console) {
  const ReplayLog log = kept_log(session);
  const std::vector<ConsoleLine> lines = console_lines(session, log);
  if (as_json) {
    nlohmann::ordered_json json;
    json["session"] = session.folder;
    json["emulator"] = session.version;
    json["command"] = session.command;
    json["instructions"] = log.instructions;
    if (!session.kept.empty()) json["kept_from"] = session.beginning().instructions;
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
  if (!session.kept.empty())
    console.print_line(
        fmt::format("kept          from instruction {} on", session.beginning().instructions));
  console.print_line(
      fmt::format("inputs        {} of serial ports, {} of keyboard and mouse, {} "
                  "packets, {} requests of disks",
                  log.typed.size(), log.keys, log.packets, log.disk_requests));
  console.print_line("instructions   what the guest sent to its first serial port by then");
  for (const ConsoleLine& line : lines)
    console.print_line(place_text(line.instructions) + " " + printable(line.text));
}

namespace {

/// After how many instructions the console has begun to send a text that is kept.
std::optional<std::uint64_t> instructions_before(const LiveSession& session,
                                                 const std::string& text) {
  const ReplayLog log = kept_log(session);
  const std::string all = console_text(session);
  std::size_t at = all.find(text);
  if (at == std::string::npos) return std::nullopt;
  for (const ReplayLog::Sent& sent : log.sent) {
    if (at < sent.bytes) return sent.instructions;
    at -= static_cast<std::size_t>(sent.bytes);
  }
  return session.beginning().instructions;
}

/// The last state from which a trigger can still come.
KeptMoment moment_before(const LiveSession& session, const std::string& start) {
  using Kind = monitor::Trigger::Kind;
  const auto trigger = monitor::parse_trigger(start);
  const std::uint64_t first = session.beginning().instructions;
  const auto refuse = [&](const std::string& why) {
    throw IoError(fmt::format(
        "--start {}: {}; the session keeps what came after {} instructions: write --start count:{}",
        start, why, first, first));
  };
  if (!trigger) return session.kept.front();
  std::uint64_t wanted = first;
  if (trigger->kind == Kind::reset && first != 0) refuse("that is not kept any more");
  if (trigger->kind == Kind::count) {
    wanted = trigger->number;
    if (wanted < first) refuse("that is not kept any more");
  } else if (trigger->kind == Kind::console && first != 0) {
    const auto sent = instructions_before(session, trigger->text);
    if (!sent) refuse("the console has not sent that in what is kept");
    wanted = *sent;
  }
  KeptMoment found = session.kept.front();
  for (const KeptMoment& moment : session.kept)
    if (moment.place.instructions <= wanted) found = moment;
  return found;
}

}  // namespace

RepeatedRun::RepeatedRun(const LiveSession& session, const std::string& program,
                         const std::string& start)
    : command_(repeated_command(session.command)) {
  command_[0] = program;
  std::string clock = fmt::format("{},rr=replay,rrfile={}", session.clock, escaped(session.log()));
  if (!session.kept.empty()) {
    moment_ = moment_before(session, start);
    clock += ",rrsnapshot=" + moment_->name;
    const std::string changes = temporary_folder() + "/citcat-repeated";
    if (is_nearly_full(changes))
      throw IoError(fmt::format("{}: {} MiB are free there and {} MiB are needed to repeat a run",
                                temporary_folder(), free_space(changes) >> 20, kDiskReserve >> 20));
    folder_.emplace(changes, Temporary::Kind::folder);
    // A qcow2 file within one whose own bytes show through: what the run changes goes there.
    command_ = with_kept_files(command_, [&](OptionValue& drive, const std::string& name) {
      constexpr std::uint64_t kEnough = std::uint64_t{1} << 43;
      const std::string file = folder_->path() + "/" + name;
      write_qcow2(file, kEnough, fs::absolute(session.folder + "/" + name).string());
      drive.remove("file");
      drive.set("driver", "qcow2");
      drive.set("file.driver", "qcow2");
      drive.set("file.file.driver", "file");
      drive.set("file.file.filename", file);
    });
  }
  command_.insert(command_.end(), {"-icount", clock});
}

}  // namespace citcat
