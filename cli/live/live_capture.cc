#include "cli/live/live_capture.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "formats/io/error.h"

extern char** environ;

namespace citcat {
namespace {

constexpr std::string_view kScheme = "sigrok:";
/// sigrok-cli's options that end a capture.
constexpr std::string_view kEndings[] = {"--samples", "--time", "--frames"};

/// A program whose two outputs are read. Ended with the object.
class RunningProgram {
 public:
  explicit RunningProgram(const std::vector<std::string>& arguments) {
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw_system_error("cannot make a pipe");
    if (pipe2(err, O_CLOEXEC) != 0) throw_system_error("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const int error = posix_spawnp(&child_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    close(err[1]);
    output_ = out[0];
    errors_ = err[0];
    if (error == 0) return;
    close(output_);
    close(errors_);
    throw IoError(error == ENOENT ? arguments[0] + " is not there: install the package sigrok-cli"
                                  : arguments[0] + ": cannot start: " + std::strerror(error));
  }
  ~RunningProgram() {
    if (child_ > 0) {
      kill(child_, SIGTERM);
      wait();
    }
    close(output_);
    close(errors_);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  /// Hands its output to `take` as it comes, until it ends; keeps the beginning of what it says.
  template <class Take>
  void read(const Take& take) {
    std::array<pollfd, 2> ends{pollfd{output_, POLLIN, 0}, pollfd{errors_, POLLIN, 0}};
    std::array<char, 65536> bytes;
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
      constexpr int kMilliseconds = 200;
      if (poll(ends.data(), ends.size(), kMilliseconds) < 0 && errno != EINTR) break;
      for (pollfd& end : ends) {
        if (end.fd < 0 || end.revents == 0) continue;
        const ssize_t n = ::read(end.fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
          end.fd = -1;
        } else if (end.fd == output_) {
          take(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
        } else if (said_.size() < kMostSaid) {
          said_.append(bytes.data(), static_cast<std::size_t>(n));
        }
      }
      take({});
    }
  }

  /// How it ended; 0 is well.
  int wait() {
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return status;
  }
  /// The last line that it wrote to its standard error.
  std::string last_words() const {
    std::istringstream lines(said_);
    std::string last;
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) last = line;
    return last;
  }

 private:
  [[noreturn]] static void throw_system_error(const std::string& what) {
    throw IoError(what + ": " + std::strerror(errno));
  }

  static constexpr std::size_t kMostSaid = 65536;
  pid_t child_ = -1;
  int output_ = -1, errors_ = -1;
  std::string said_;
};

/// The name of an analog channel in what sigrok-cli wrote: it prints their values as text ("A1: 0.5
/// V") in between, whatever the format. Empty where there is none.
std::string analog_channel(const std::string& path) {
  constexpr int kMostLines = 4096;
  std::ifstream file(path);
  std::string line;
  bool values = false;
  for (int i = 0; i < kMostLines && std::getline(file, line); ++i) {
    values = values || line.find("$enddefinitions") != std::string::npos;
    const std::size_t colon = line.find(": ");
    if (values && line[0] != '$' && line[0] != '#' && colon != std::string::npos)
      return line.substr(0, colon);
  }
  return {};
}

void capture_live(const std::string& source, const std::string& path, const Console& console) {
  Progress progress = console.progress("capturing", "bytes");
  RunningProgram program(live_arguments(source));
  std::ofstream file(path, std::ios::binary);
  std::uint64_t bytes = 0;
  program.read([&](std::string_view piece) {
    file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (!file) throw IoError(path + ": cannot write: " + std::strerror(errno));
    bytes += piece.size();
    progress.update(bytes);
  });
  file.close();
  if (!file) throw IoError(path + ": cannot write");
  const int status = program.wait();
  if (const std::string analog = analog_channel(path); !analog.empty())
    throw IoError(source +
                  ": expected digital channels alone, found values of the analog channel " +
                  analog + "; name the digital ones within the quotes: --channels D0,D1,...");
  if (status == 0 && bytes != 0) return;
  const std::string words = program.last_words();
  throw IoError(source + ": sigrok-cli captured nothing" +
                (words.empty() ? fmt::format(", and ended with status {}", status) : ": " + words) +
                "; `sigrok-cli --scan` lists the analysers that are there");
}

}  // namespace

bool is_live_source(std::string_view name) { return name.starts_with(kScheme); }

std::vector<std::string> live_arguments(const std::string& source) {
  std::istringstream words(source.substr(kScheme.size()));
  std::string driver;
  words >> driver;
  if (driver.empty())
    throw UsageError(source + ": expected sigrok:DRIVER[:conn=...] and options of sigrok-cli");
  std::vector<std::string> arguments{"sigrok-cli", "--driver", driver};
  bool ends = false;
  for (std::string word; words >> word;) {
    ends |= std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
      return word == ending || word.starts_with(std::string(ending) + "=");
    });
    if (word.starts_with("-o") || word.starts_with("-O") || word.starts_with("--output"))
      throw UsageError(source + ": expected options of a capture, found '" + word +
                       "': the capture is read here, not written to a file");
    arguments.push_back(word);
  }
  if (!ends)
    throw UsageError(source +
                     ": say how long to capture, as `--samples 10m` or `--time 500ms` within the "
                     "quotes");
  arguments.insert(arguments.end(), {"--output-format", "vcd"});
  return arguments;
}

LiveCaptures::LiveCaptures(std::vector<std::string>& names, const Console& console) {
  std::size_t number = 0;
  for (std::string& name : names) {
    if (!is_live_source(name)) continue;
    if (!folder_) {
      const auto place = std::filesystem::temp_directory_path() / "citcat-live";
      folder_ = std::make_unique<Temporary>(place.string(), Temporary::Kind::folder);
    }
    const std::string path = folder_->path() + fmt::format("/live{}.vcd", number++);
    capture_live(name, path, console);
    name = path;
  }
}

}  // namespace citcat
