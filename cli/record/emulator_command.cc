#include "cli/record/emulator_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include "cli/record/emulator_words.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultRam = std::uint64_t{128} << 20;  // QEMU's pc machine without -m

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

/// Files the emulator is going to read. It would say so itself, but only after it has started.
void check_inputs(const std::vector<std::string>& command) {
  for (const char* option : {"kernel", "initrd", "hda", "hdb", "cdrom", "fda"}) {
    const auto path = option_value(command, option);
    if (!path || path->find(',') != std::string::npos || has_protocol(*path)) continue;
    struct stat status {};
    if (stat(path->c_str(), &status) != 0) throw IoError(*path + ": " + std::strerror(errno));
    if (S_ISREG(status.st_mode) && status.st_size == 0)
      throw FormatError(*path, 0,
                        fmt::format("expected an image for -{}, found an empty file", option));
  }
}

/// Whether the kernel that the emulator starts keeps memory away from itself, for the driver.
bool reserves_window(const std::vector<std::string>& command) {
  const std::string words = option_value(command, "append").value_or("");
  return words.find("memmap=") != std::string::npos || words.find("reserve=") != std::string::npos;
}

}  // namespace

/// "128" (of MiB), "3.5G", "size=64M,slots=2". The emulator rounds up to 8 KiB.
std::optional<std::uint64_t> bytes_of_ram(const std::string& value) {
  constexpr std::string_view kUnits = "BKMGTPE", kDigits = "0123456789.";
  constexpr std::uint64_t kGrain = 8192, kMost = std::uint64_t{1} << 62;
  const OptionValue parts(value);
  const std::string text = parts.get("size").value_or(parts.head());
  if (text.empty()) return kDefaultRam;
  const std::size_t digits = std::min(text.find_first_not_of(kDigits), text.size());
  const std::string unit = digits == text.size() ? "M" : text.substr(digits);
  const std::size_t scale =
      kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  long double size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, size);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == text.data() + digits;
  // The emulator takes a fraction without a unit for one of bytes.
  const bool lacks_unit = digits == text.size() && text.find('.') != std::string::npos;
  if (!is_number || unit.size() != 1 || scale == std::string_view::npos || lacks_unit)
    return std::nullopt;
  size = std::ldexp(size, static_cast<int>(10 * scale));
  if (size >= static_cast<long double>(kMost)) return kMost;
  const auto bytes = static_cast<std::uint64_t>(size + 0.5L);
  return bytes == 0 ? kDefaultRam : (bytes + kGrain - 1) / kGrain * kGrain;
}

std::uint64_t ram_bytes(const std::vector<std::string>& command) {
  std::string given;  // the last one counts
  for (const EmulatorOption& option : emulator_options(command))
    if (option.name == "m") given = option.value.value_or("");
  const auto bytes = bytes_of_ram(given);
  if (!bytes)
    throw UsageError(
        fmt::format("-m {}: expected a size; write -m 512M, -m 3.5G or the like", given));
  if (*bytes > kMaxRecordedRam)
    throw UsageError(fmt::format("-m {}: more memory than can be recorded; write -m {}G", given,
                                 kMaxRecordedRam >> 30));
  return *bytes;
}

fs::path own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path(".") : self.parent_path();
}

std::optional<std::string> option_value(const std::vector<std::string>& command,
                                        const std::string& name) {
  for (std::size_t n = 1; n < command.size(); ++n)
    if (command[n] == "-" + name || command[n] == "--" + name)
      return n + 1 < command.size() ? command[n + 1] : std::string();
  return std::nullopt;
}

bool uses_terminal(const std::vector<std::string>& command) {
  for (const char* const option : {"nographic", "curses"}) {
    if (option_value(command, option)) return true;
  }
  return std::any_of(command.begin(), command.end(), [](const std::string& word) {
    return word == "stdio" || word.starts_with("mon:stdio") || word.starts_with("stdio,");
  });
}

std::string likely_start(const std::vector<std::string>& command, const std::string& stop) {
  constexpr std::string_view kExit = "exit:";
  if (reserves_window(command)) return "driver";
  return stop.starts_with(kExit) ? "process:" + stop.substr(kExit.size()) : "reset";
}

void check_command(const RecordArguments& arguments) {
  const std::vector<std::string>& command = arguments.command;
  (void)ram_bytes(command);
  if (arguments.start == "driver" && option_value(command, "kernel") && !reserves_window(command))
    throw UsageError(
        "--start driver: the kernel's command line keeps no window for the driver; write -append "
        "'... memmap=64K$0x6000000', or another --start");
  check_inputs(command);
}

std::vector<std::string> monitored_command(const RecordArguments& arguments, const std::string& log,
                                           int data, int control) {
  std::vector<std::string> out = arguments.command;
  const auto add = [&out](std::initializer_list<std::string> more) { out.insert(out.end(), more); };
  add({"-object", fmt::format("memory-backend-memfd,id=citcat-ram,size={},share=on",
                              ram_bytes(arguments.command))});
  add({"-machine", "memory-backend=citcat-ram"});
  // Time by instructions: else the slower the recording, the more timer interrupts it sees.
  if (!option_value(arguments.command, "icount")) add({"-icount", "shift=5,sleep=off"});
  add({"-D", log, "-d", "int,cpu_reset"});
  std::string plugin =
      fmt::format("{},data={},control={},log={},ram=memory-backend-memfd,cache={},start={}",
                  escaped(find_monitor(arguments.monitor)), data, control, escaped(log),
                  arguments.cache, escaped(arguments.start));
  if (!arguments.stop.empty()) plugin += ",stop=" + escaped(arguments.stop);
  if (arguments.repeats) plugin += ",observe=on";
  if (arguments.taken_up_at != 0) plugin += fmt::format(",before={}", arguments.taken_up_at);
  if (arguments.quit) plugin += ",quit=on";
  if (arguments.processors == 1) plugin += ",packed=on";
  if (arguments.processors > 1) plugin += fmt::format(",processors={}", arguments.processors);
  add({"-plugin", plugin});
  return out;
}

}  // namespace citcat
