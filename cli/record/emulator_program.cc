#include "cli/record/emulator_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/record/emulator_command.h"
#include "cli/record/recorded_emulator.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

/// The first with the plugin interface that the monitor is written for
/// (monitor/qemu/qemu_plugin_api.h).
constexpr std::pair kOldestQemu{9, 2};

std::string name_of_program(const std::string& path) { return fs::path(path).filename().string(); }

bool is_executable(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// As a shell would look for it.
bool is_there(const std::string& program) {
  if (program.find('/') != std::string::npos) return is_executable(program);
  const char* const path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    if (is_executable(fs::path(folders.substr(at, end - at)) / program)) return true;
    at = end + 1;
  }
  return false;
}

fs::path folder_in(const char* variable, const char* below) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? fs::path(value) / below : fs::path();
}

/// The suite of Debian whose QEMU is to be taken; "" where none was chosen (scripts/monitor-qemu).
std::string chosen_suite() {
  const char* const suite = std::getenv("CITCAT_QEMU_SUITE");
  return suite != nullptr ? suite : "";
}

/// Whether scripts/setup-monitor has fetched the chosen QEMU into this folder
/// (scripts/build-folder.sh).
bool has_qemu(const fs::path& build) {
  std::error_code error;
  const std::string suite = chosen_suite();
  const fs::path qemu = build / "deps" / (suite.empty() ? "qemu" : "qemu-" + suite);
  return !build.empty() && fs::exists(qemu / "usr/bin", error);
}

/// The script that runs the fetched QEMU, where one has been fetched; "" otherwise.
std::string fetched_emulator(bool wide) {
  const fs::path own = own_folder();
  for (const fs::path& scripts :
       {own / "../../scripts", own / "../scripts", own / "../share/citcat/scripts"}) {
    const fs::path script = scripts / (wide ? "monitor-qemu-x86_64" : "monitor-qemu");
    std::error_code error;
    if (!is_executable(script)) continue;
    for (const fs::path& build :
         {folder_in("CITCAT_BUILD", ""), scripts / "../build",
          folder_in("XDG_CACHE_HOME", "citcat"), folder_in("HOME", ".cache/citcat")})
      if (has_qemu(build))
        return fs::weakly_canonical(script.parent_path(), error) / script.filename();
  }
  return "";
}

/// What the program prints within a few seconds, with this option and a value where there is one.
/// An emulator that does not answer is left to say what is wrong with it when it is started.
std::string printed(const std::string& program, const char* option, const char* value = nullptr) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kPatience{10};
  Pipe out;
  const pid_t child = fork();
  if (child < 0) return "";
  if (child == 0) {
    dup2(out.write.value(), STDOUT_FILENO);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO);
    execlp(program.c_str(), program.c_str(), option, value, nullptr);
    _exit(127);
  }
  out.write = FileDescriptor();
  std::string text;
  const Clock::time_point end = Clock::now() + kPatience;
  for (bool more = true; more;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ready{out.read.value(), POLLIN, 0};
    std::array<char, 512> buffer;
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t size = read(out.read.value(), buffer.data(), buffer.size());
    more = size > 0;
    if (more) text.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (text.empty()) kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

/// "qemu-system-" and an architecture that is not x86.
bool is_of_other_architecture(const std::string& name) {
  constexpr std::string_view kSystem = "qemu-system-";
  return name.starts_with(kSystem) && name.find("i386") == std::string::npos &&
         name.find("x86") == std::string::npos && name.find("amd64") == std::string::npos;
}

/// How to come by an emulator that can be used.
std::string instead_of(const std::string& program) {
  const std::string fetched =
      fetched_emulator(name_of_program(program).find("i386") == std::string::npos);
  if (!fetched.empty()) return fmt::format("write {} in its place", fetched);
  return "scripts/setup-monitor fetches one, and so does apt install -t bookworm-backports "
         "qemu-system-x86";
}

}  // namespace

std::optional<std::pair<int, int>> emulator_version(const std::string& text) {
  int major = 0, minor = 0;
  if (std::sscanf(text.c_str(), "QEMU emulator version %d.%d", &major, &minor) != 2)
    return std::nullopt;
  return std::pair(major, minor);
}

std::string emulator_banner(const std::string& program) {
  const std::string text = printed(program, "--version");
  return text.substr(0, text.find('\n'));
}

bool has_display(const std::string& program, const std::string& kind) {
  const std::string text = printed(program, "-display", "help");
  return text.find("\nnone\n") == std::string::npos ||
         text.find("\n" + kind + "\n") != std::string::npos;
}

EmulatorProgram find_emulator(const std::string& named) {
  const std::string name = name_of_program(named);
  if (is_of_other_architecture(name))
    throw UsageError(
        fmt::format("{}: expected an emulator of x86 processors; write "
                    "qemu-system-x86_64 or qemu-system-i386",
                    named));
  if (name.find("qemu") == std::string::npos) return {named, ""};
  const bool is_plain = named.find('/') == std::string::npos;
  if (const std::string suite = chosen_suite(); is_plain && !suite.empty()) {
    const std::string fetched = fetched_emulator(name.find("i386") == std::string::npos);
    if (!fetched.empty()) return {fetched, fmt::format("{}: that of {}", named, suite)};
    throw IoError(fmt::format(
        "CITCAT_QEMU_SUITE: no QEMU of {} has been fetched; scripts/setup-monitor --suite {} "
        "fetches it",
        suite, suite));
  }
  if (!is_there(named)) {
    const std::string fetched = fetched_emulator(name.find("i386") == std::string::npos);
    if (fetched.empty() || !is_plain)
      throw IoError(fmt::format("{}: no such program; {}", named, instead_of(named)));
    return {fetched, fmt::format("{}: not found; using {} instead", named, fetched)};
  }
  const auto version = emulator_version(printed(named, "--version"));
  if (version && *version < kOldestQemu)
    throw UsageError(fmt::format(
        "{}: expected QEMU {}.{} or newer, whose plugins can read registers and values, found "
        "{}.{}; {}",
        named, kOldestQemu.first, kOldestQemu.second, version->first, version->second,
        instead_of(named)));
  return {named, ""};
}

}  // namespace citcat
