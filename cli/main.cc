// The program: picks the command, and is the one place where exceptions become exit codes.

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/text_error_report.h"
#include "formats/io/error.h"
#include "formats/io/log.h"
#include "formats/io/mapped_file.h"
#include "formats/io/memory_limit.h"
#include "formats/io/temporary.h"
#include "tools/plugin/plugin_server.h"

namespace citcat {
namespace {

/// Large tables come from the system, which has zeros, and not from memory used before, which would
/// have to be cleared as a whole: the C library changes over to that by itself once a large table
/// has been given back.
void keep_large_tables_apart() {
  constexpr int kLarge = 1 << 20, kKept = 1 << 26;  // bytes
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kKept);
}

/// Parses the command line and runs the command it names.
ExitCode run_program(int argc, char** argv) {
  CommandLine line;
  const CommandRun run = line.parse(argc, argv);
  if (const char* const setting = std::getenv("CITCAT_LOG")) {
    check_log_setting(setting, log_modules());
  }
  set_memory_limit(line.memory_limit());
  const Console console(line.quiet());
  tell_of_leftovers([console](const std::string& path) {
    console.note(path + ": removed; an earlier run was interrupted and left it unfinished");
  });
  return run(console);
}

/// Runs the program; every failure becomes one message on stderr and its exit code.
ExitCode run_and_report(int argc, char** argv) {
  const Console console(false);
  try {
    const ExitCode code = run_program(argc, argv);
    console.flush();
    return code;
  } catch (const Interrupted& interrupted) {
    console.error(interrupted.what());
    return ExitCode::interrupted;
  } catch (const UsageError& error) {
    console.error(error.what());
    return ExitCode::usage;
  } catch (const mdl::TextError& error) {
    tell_text_error(error, console);
    return ExitCode::bad_input;
  } catch (const FormatError& error) {
    console.error(error.what());
    return ExitCode::bad_input;
  } catch (const Error& error) {  // IoError, InternalError
    console.error(error.what());
    return ExitCode::system;
  } catch (const std::bad_alloc&) {
    console.error("out of memory");
    return ExitCode::system;
  } catch (const std::system_error& error) {  // std::filesystem, std::ios_base, threads
    console.error(error.what());
    return ExitCode::system;
  } catch (const std::exception& error) {
    console.error(std::string("internal error: ") + error.what());
    return ExitCode::system;
  }
}

/// What the program opens itself must not become one of the three that everybody writes to unasked.
/// Reading from what was closed finds nothing, writing to it fails as before.
void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDONLY);
  }
}

const std::terminate_handler default_terminate = std::get_terminate();

void tell_no_memory() {
  constexpr std::string_view kMessage = "citcat: error: out of memory\n";
  if (::write(STDERR_FILENO, kMessage.data(), kMessage.size()) < 0) {
  }
}

/// The library's destructor of a JSON value takes memory (nlohmann::basic_json,
/// json_value::destroy), and what a destructor throws ends the program: as any other want of memory
/// does. What was being written stays under its temporary name, for the next run to remove.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    tell_no_memory();
    ::_exit(static_cast<int>(ExitCode::system));
  } catch (...) {
  }
  default_terminate();
  std::abort();
}

}  // namespace
}  // namespace citcat

int main(int argc, char** argv) {
  citcat::fill_standard_descriptors();
  citcat::MappedFile::allow();
  citcat::keep_large_tables_apart();
  // Before anything of the program's own: what runs then is somebody else's tool.
  if (const auto status = citcat::tools::serve_plugin(argc, argv)) return *status;
  citcat::install_interrupt_handler();
  std::set_terminate(citcat::end_without_memory);
  try {
    return static_cast<int>(citcat::run_and_report(argc, argv));
  } catch (...) {  // no memory for a message
    citcat::tell_no_memory();
    return static_cast<int>(citcat::ExitCode::system);
  }
}
