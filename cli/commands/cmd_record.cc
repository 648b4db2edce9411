// Runs an emulator with the bus monitor inside and keeps what it sends. The files are written here,
// not in the emulator: whatever happens to it, what it has sent is not lost.

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/import/bus_record.h"
#include "cli/command.h"
#include "cli/command_description.h"
#include "cli/interrupt.h"
#include "formats/io/byte_sink.h"
#include "formats/io/error.h"
#include "monitor/trigger.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultRam = std::uint64_t{128} << 20;  // QEMU's pc machine without -m
// Above this the pc machine splits its RAM around the PCI hole.
constexpr std::uint64_t kMaxRam = std::uint64_t{2} << 30;

// Kept free on the device: what the compressor still holds must find room when recording stops.
constexpr std::uint64_t kDiskReserve = std::uint64_t{16} << 20;

struct RecordArguments {
  std::string output, internal, cache = "i486", start = "driver", stop, monitor;
  std::vector<std::string> command;
  bool quit = false, json = false;
};

std::string system_message(const std::string& what) { return what + ": " + std::strerror(errno); }

/// A file descriptor that is closed when its owner goes.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw IoError(system_message("pipe"));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    // Larger than the default, so that emulator and compressor wait for each other less often.
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  }
};

/// Keeps a second recording away from the same output.
class OutputLock {
 public:
  explicit OutputLock(const std::string& output) : path_(output + ".lock") {
    lock_ = Descriptor(open(path_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666));
    if (!lock_.is_open()) throw IoError(system_message(path_));
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      throw IoError(output + ": another recording is writing this file");
  }
  ~OutputLock() { unlink(path_.c_str()); }
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;

 private:
  std::string path_;
  Descriptor lock_;
};

/// The emulator's log, which only the monitor reads.
class LogFile {
 public:
  LogFile() {
    path_ = (fs::temp_directory_path() / "citcat-record-XXXXXX").string();
    const int fd = mkstemp(path_.data());
    if (fd < 0) throw IoError(system_message(path_));
    ::close(fd);
  }
  ~LogFile() { unlink(path_.c_str()); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// ---- the emulator's command line
// -----------------------------------------------------------------

/// The value of an option of the emulator, which may be written with one dash or two.
std::optional<std::string> option_value(const std::vector<std::string>& command,
                                        const std::string& name) {
  for (std::size_t n = 1; n < command.size(); ++n)
    if (command[n] == "-" + name || command[n] == "--" + name)
      return n + 1 < command.size() ? command[n + 1] : std::string();
  return std::nullopt;
}

/// "-m 128", "-m 1G", "-m size=64M,slots=2".
std::uint64_t ram_bytes(const std::vector<std::string>& command) {
  const auto given = option_value(command, "m");
  if (!given) return kDefaultRam;
  std::string text = given->substr(0, given->find(','));
  if (text.starts_with("size=")) text.erase(0, 5);
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(result.ptr, text.c_str() + text.size());
  if (result.ec != std::errc{} || value == 0 || value > kMaxRam || unit.size() > 1)
    throw UsageError("the emulator's option -m " + *given + " is not understood");
  const char scale = unit.empty() ? 'M' : static_cast<char>(std::toupper(unit[0]));
  const int shift = scale == 'G' ? 30 : scale == 'M' ? 20 : scale == 'K' ? 10 : -1;
  if (shift < 0 || value > (kMaxRam >> shift))
    throw UsageError(fmt::format("-m {}: between 1 KiB and {} MiB of memory can be recorded",
                                 *given, kMaxRam >> 20));
  return value << shift;
}

fs::path own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path(".") : self.parent_path();
}

/// --monitor, then $CITCAT_MONITOR, then where the build and the package put it.
std::string find_monitor(const std::string& given) {
  constexpr const char* kName = "citcat-monitor.so";
  if (!given.empty()) return given;
  if (const char* const named = std::getenv("CITCAT_MONITOR")) return named;
  const fs::path folder = own_folder();
  for (const fs::path& place :
       {folder / kName, folder / "../monitor" / kName, folder / CITCAT_PRIVATE_FOLDER / kName}) {
    std::error_code error;
    if (fs::exists(place, error)) return fs::canonical(place).string();
  }
  throw IoError(std::string(kName) +
                ": not found; give --monitor, or build it: scripts/setup-monitor");
}

void check_trigger(const char* option, const std::string& text) {
  if (monitor::parse_trigger(text)) return;
  throw UsageError(fmt::format(
      "{}: expected driver, address:HEX, port:HEX[=HEX], count:N or console:TEXT, found {}", option,
      text));
}

void check_command(const std::vector<std::string>& command) {
  if (command.empty()) throw UsageError("the emulator's command line is missing, after --");
  for (const char* own : {"d", "D", "plugin"})
    if (option_value(command, own))
      throw UsageError(
          fmt::format("-{} is used by the monitor and cannot be given to the emulator", own));
  const auto accelerator = option_value(command, "accel");
  if (option_value(command, "enable-kvm") || (accelerator && accelerator->starts_with("kvm")))
    throw UsageError("only software emulation can be recorded: leave -enable-kvm and -accel away");
}

/// Files the emulator is going to read. It would say so itself, but only after it has started.
void check_inputs(const std::vector<std::string>& command) {
  for (const char* option : {"kernel", "initrd", "hda", "hdb", "cdrom", "fda"}) {
    const auto path = option_value(command, option);
    if (!path || path->find(',') != std::string::npos) continue;
    struct stat status {};
    if (stat(path->c_str(), &status) != 0) throw IoError(system_message(*path));
    if (S_ISREG(status.st_mode) && status.st_size == 0)
      throw FormatError(*path, 0,
                        fmt::format("expected an image for -{}, found an empty file", option));
  }
}

/// A value inside a comma-separated option: QEMU takes a doubled comma for one.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == ',' ? std::string(",,") : std::string(1, c);
  return out;
}

std::vector<std::string> monitored_command(const RecordArguments& arguments, const LogFile& log,
                                           int data, int control) {
  std::vector<std::string> out = arguments.command;
  const auto add = [&out](std::initializer_list<std::string> more) { out.insert(out.end(), more); };
  add({"-object", fmt::format("memory-backend-memfd,id=citcat-ram,size={},share=on",
                              ram_bytes(arguments.command))});
  add({"-machine", "memory-backend=citcat-ram"});
  // Time by instructions: else the slower the recording, the more timer interrupts it sees.
  if (!option_value(arguments.command, "icount")) add({"-icount", "shift=5,sleep=off"});
  add({"-D", log.path(), "-d", "int"});
  std::string plugin =
      fmt::format("{},data={},control={},log={},ram=memory-backend-memfd,cache={},start={}",
                  escaped(find_monitor(arguments.monitor)), data, control, escaped(log.path()),
                  arguments.cache, escaped(arguments.start));
  if (!arguments.stop.empty()) plugin += ",stop=" + escaped(arguments.stop);
  if (arguments.quit) plugin += ",quit=on";
  add({"-plugin", plugin});
  return out;
}

/// The emulator as a child process; it inherits the write ends of both pipes and nothing else.
class Emulator {
 public:
  Emulator(const std::vector<std::string>& command, Pipe& data, Pipe& control) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    child_ = fork();
    if (child_ < 0) throw IoError(system_message("fork"));
    if (child_ == 0) {
      fcntl(data.write.get(), F_SETFD, 0);
      fcntl(control.write.get(), F_SETFD, 0);
      execvp(argv[0], argv.data());
      const std::string message = system_message(std::string("citcat: error: ") + argv[0]) + "\n";
      (void)!::write(STDERR_FILENO, message.data(), message.size());
      _exit(127);
    }
    data.write.close();
    control.write.close();
  }
  ~Emulator() {
    if (child_ <= 0) return;
    stop();
    wait();
  }
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  void stop() const { kill(child_, SIGTERM); }
  /// How it ended: "" for status 0.
  std::string wait() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    if (WIFSIGNALED(status))
      return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == 127) return "could not be started";
    if (WEXITSTATUS(status) != 0) return fmt::format("ended with status {}", WEXITSTATUS(status));
    return "";
  }

 private:
  pid_t child_ = -1;
};

// ---- what the monitor sends
// ----------------------------------------------------------------------

/// "stop instructions=5 records=9 … reason=marker" as a map.
std::map<std::string, std::string> parse_totals(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::size_t equal = text.find('=');
    if (equal == std::string_view::npos) break;
    const std::string key(text.substr(0, equal));
    const std::size_t end = key == "reason" ? text.size() : text.find(' ', equal);
    out[key] = text.substr(equal + 1, end == std::string_view::npos ? end : end - equal - 1);
    text.remove_prefix(end == std::string_view::npos ? text.size()
                                                     : std::min(end + 1, text.size()));
  }
  return out;
}

/// Bytes that can still be written beside `path`. A device that does not tell has room.
std::uint64_t free_space(const std::string& path) {
  struct statvfs status {};
  const fs::path folder = fs::path(path).parent_path();
  if (statvfs(folder.empty() ? "." : folder.c_str(), &status) != 0) return ~std::uint64_t{0};
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

bool is_nearly_full(const std::string& path) {
  struct stat status {};
  // Pipes and devices have no disk to fill.
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return false;
  return free_space(path) < kDiskReserve;
}

/// Both streams of the monitor on their way into files.
class Receiver {
 public:
  Receiver(const RecordArguments& arguments, const Console& console)
      : console_(console), output_(arguments.output), internal_(arguments.internal) {}

  /// Takes what can be read now. False at the end of the stream.
  bool take_data(int fd) {
    const ssize_t n = ::read(fd, buffer_.data() + held_, buffer_.size() - held_);
    if (n < 0 && errno == EINTR) return true;
    if (n < 0) throw IoError(system_message("the monitor's pipe"));
    if (n == 0) return false;
    // An emulator that is killed may leave part of a record behind.
    const std::size_t size = held_ + static_cast<std::size_t>(n);
    const std::size_t whole = size - size % kBusRecordBytes;
    if (!disk_full_) keep({buffer_.data(), whole});
    held_ = size - whole;
    std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(whole), held_, buffer_.begin());
    return true;
  }

  bool take_control(int fd) {
    char text[65536];
    const ssize_t n = ::read(fd, text, sizeof text);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) return false;
    line_.append(text, static_cast<std::size_t>(n));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take_line(std::string_view(line_).substr(begin, end - begin));
    line_.erase(0, begin);
    return true;
  }

  /// Completes the files, with a mark where the ending is an interrupted one. Returns false when
  /// nothing was recorded.
  bool finish(Ending ending) {
    if (!records_) return false;
    if (is_interrupted(ending)) write_mark(ending);
    records_->finish();
    if (!values_) values_ = open_values();
    values_->finish();
    return true;
  }

  std::uint64_t records() const { return bytes_ / kBusRecordBytes; }
  bool started() const { return started_; }
  bool failed() const { return failed_; }
  /// No more records are taken: the rest of the device is needed to complete the files.
  bool disk_full() const { return disk_full_; }
  const std::map<std::string, std::string>& totals() const { return totals_; }

 private:
  void keep(std::span<const std::uint8_t> records) {
    if (!records_) records_ = open_sink(output_);
    records_->write(records);
    bytes_ += records.size();
    disk_full_ = is_nearly_full(output_);
  }

  void write_mark(Ending ending) {
    BusRecord mark;
    mark.instructions = kNoCount;
    mark.type = static_cast<std::uint8_t>(BusRecordType::cut);
    mark.size = 1;
    mark.data[0] = cut_code(ending);
    records_->write(std::bit_cast<std::array<std::uint8_t, kBusRecordBytes>>(mark));
  }

  void take_line(std::string_view line) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view kind = line.substr(0, blank);
    const std::string rest(line.substr(std::min(blank + 1, line.size())));
    if (kind == "value") {
      if (!values_) values_ = open_values();
      write_text(rest + "\n");
    } else if (kind == "start") {
      started_ = true;
      console_.note("recording begins, " + rest);
    } else if (kind == "stop") {
      totals_ = parse_totals(rest);
    } else if (kind == "error") {
      failed_ = true;
      console_.warn("the monitor: " + rest);
    }
  }

  std::unique_ptr<ByteSink> open_values() {
    auto sink = open_sink(internal_);
    values_ = std::move(sink);
    write_text("icount,op,eip,eax,ebx,ecx,edx\n");
    return std::move(values_);
  }
  void write_text(const std::string& text) {
    values_->write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }

  const Console& console_;
  std::string output_, internal_;
  std::unique_ptr<ByteSink> records_, values_;
  std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(1 << 20);
  std::size_t held_ = 0;  ///< bytes of an unfinished record, at the front of the buffer
  std::string line_;
  std::uint64_t bytes_ = 0;
  bool started_ = false, failed_ = false, disk_full_ = false;
  std::map<std::string, std::string> totals_;
};

/// Receives until the emulator is gone. Ctrl-C asks it to stop; what it has sent is still taken.
bool receive_all(Receiver& receiver, const Emulator& emulator, Pipe& data, Pipe& control) {
  bool interrupted = false, stopped = false;
  pollfd ends[2] = {{data.read.get(), POLLIN, 0}, {control.read.get(), POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (poll(ends, 2, 500) < 0 && errno != EINTR) throw IoError(system_message("poll"));
    try {
      if (!interrupted) check_interrupt();
    } catch (const Interrupted&) {
      interrupted = true;
      emulator.stop();
    }
    if (ends[0].revents != 0 && !receiver.take_data(ends[0].fd)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !receiver.take_control(ends[1].fd)) ends[1].fd = -1;
    for (pollfd& end : ends) end.revents = 0;
    if (receiver.disk_full() && !stopped) {
      stopped = true;
      emulator.stop();
    }
  }
  return interrupted;
}

/// `by_hand`: somebody pressed Ctrl-C while it ran.
Ending ending_of(const RecordArguments& arguments, const Receiver& receiver, bool by_hand) {
  if (receiver.disk_full()) return Ending::storage_full;
  if (receiver.failed()) return Ending::monitor_failed;
  const auto& totals = receiver.totals();
  if (!totals.empty() && totals.at("reason") != "exit") return Ending::capture_end;
  if (by_hand) return Ending::by_hand;
  // Without a trigger to wait for, the emulator's orderly end is the end that was asked for.
  const bool awaits_trigger = !arguments.stop.empty() || arguments.start == "driver";
  return totals.empty() || awaits_trigger ? Ending::source_gone : Ending::capture_end;
}

void print_result(const RecordArguments& arguments, const Receiver& receiver, double seconds,
                  const Console& console) {
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
    json["internal"] = arguments.internal;
    json["records"] = receiver.records();
    json["instructions"] = nullptr;
    if (counted) json["instructions"] = number("instructions");
    json["interrupts"] = number("interrupts");
    json["exceptions"] = number("exceptions");
    json["software_interrupts"] = number("software_interrupts");
    json["external_changes"] = number("external_changes");
    json["seconds"] = seconds;
    json["end"] = reason;
    console.print_json(json);
    return;
  }
  if (counted) {
    console.print(fmt::format("{}: {} instructions, {} bus records, {} interrupts, {} exceptions\n",
                              arguments.output, number("instructions"), receiver.records(),
                              number("interrupts"), number("exceptions")));
  } else {
    console.print(fmt::format("{}: {} bus records, until the recording ended early\n",
                              arguments.output, receiver.records()));
  }
  console.print(fmt::format("next: citcat import {} --internal {} -o RECORDING.citcat\n",
                            arguments.output, arguments.internal));
}

ExitCode run_record(RecordArguments arguments, const Console& console) {
  check_trigger("--start", arguments.start);
  if (!arguments.stop.empty()) check_trigger("--stop", arguments.stop);
  check_command(arguments.command);
  check_inputs(arguments.command);
  if (arguments.output == "-") {
    throw UsageError("-o: expected a file, with another beside it for values that cross no bus");
  }
  if (arguments.internal.empty()) {
    std::string stem = arguments.output;
    for (const char* suffix : {".zst", ".bin"})
      if (stem.ends_with(suffix)) stem.erase(stem.size() - std::strlen(suffix));
    arguments.internal = stem + ".side.csv";
  }
  const OutputLock lock(arguments.output);
  if (is_nearly_full(arguments.output))
    throw IoError(fmt::format("{}: {} MiB are free there and {} MiB are needed to begin",
                              arguments.output, free_space(arguments.output) >> 20,
                              kDiskReserve >> 20));
  const LogFile log;
  Pipe data, control;
  const auto command = monitored_command(arguments, log, data.write.get(), control.write.get());
  Receiver receiver(arguments, console);
  const auto begin = std::chrono::steady_clock::now();
  Emulator emulator(command, data, control);
  const bool interrupted = receive_all(receiver, emulator, data, control);
  const std::string how = emulator.wait();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  if (!receiver.finish(ending_of(arguments, receiver, interrupted))) {
    if (interrupted) return ExitCode::interrupted;
    if (!how.empty()) throw IoError(fmt::format("{} {}", arguments.command[0], how));
    if (receiver.failed()) return ExitCode::system;
    console.warn("nothing was recorded: the start trigger '" + arguments.start + "' never came");
    return ExitCode::answer_is_no;
  }
  print_result(arguments, receiver, seconds, console);
  if (receiver.disk_full())
    throw IoError(
        fmt::format("{}: the disk is full; the recording was stopped there and is complete "
                    "up to its last record, number {}",
                    arguments.output, receiver.records()));
  if (interrupted) return ExitCode::interrupted;
  if (receiver.totals().empty() || receiver.failed()) {
    throw IoError(fmt::format(
        "the recording ended early: {} {}; {} holds the {} bus records it "
        "sent until then",
        arguments.command[0], how.empty() ? "stopped" : how, arguments.output, receiver.records()));
  }
  if (receiver.totals().at("reason") == "exit")
    console.note("the emulator ended before the stop trigger; the recording goes up to there");
  return ExitCode::ok;
}

CommandRun define_record(CLI::App& app) {
  auto arguments = std::make_shared<RecordArguments>();
  app.add_option("-o,--output", arguments->output, "Capture to write (.zst compresses)")
      ->type_name(kFileType)
      ->required();
  app.add_option("--internal", arguments->internal,
                 "Values that cross no bus (default: beside the capture, .side.csv)")
      ->type_name(kFileType);
  app.add_option("--cache", arguments->cache, "Cache between processor and monitor")
      ->check(CLI::IsMember({"none", "i486", "write-back", "pentium"}));
  app.add_option("--start", arguments->start,
                 "driver, address:HEX, port:HEX[=HEX], count:N or console:TEXT");
  app.add_option("--stop", arguments->stop,
                 "The same, besides the driver's stop marker; count:N counts recorded ones");
  app.add_flag("--quit-at-stop", arguments->quit, "Shut the emulator down when recording stops");
  app.add_option("--monitor", arguments->monitor, "The monitor plugin, citcat-monitor.so")
      ->type_name(kFileType);
  app.add_flag("--json", arguments->json, "Print one line of JSON");
  app.add_option("COMMAND", arguments->command, "The emulator and its options, after --");
  return [arguments](const Console& console) { return run_record(*arguments, console); };
}

}  // namespace

extern const Command kRecordCommand{
    "record", "Record the bus of a machine that QEMU emulates",
    "citcat record -o boot.bin.zst -- qemu-system-i386 -m 128 -kernel vmlinuz.img", define_record};

}  // namespace citcat
