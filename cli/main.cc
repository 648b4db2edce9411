// The program: picks the command, and is the one place where exceptions become exit codes.

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "formats/io/error.h"
#include "formats/io/log.h"

namespace citcat {
namespace {

/// Indents each line of an example under a heading, for the foot of --help.
std::string example_footer(const std::string& example) {
  std::string footer = "EXAMPLE\n  ";
  for (const char character : example) {
    footer += character;
    if (character == '\n') footer += "  ";
  }
  return footer + "\n";
}

/// Large tables come from the system, which has zeros, and not from memory used before, which would
/// have to be cleared as a whole: the C library changes over to that by itself once a large table has
/// been given back.
void keep_large_tables_apart() {
  constexpr int kLarge = 1 << 20, kKept = 1 << 26;  // bytes
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kKept);
}

/// Parses the command line and runs the command it names.
ExitCode run_program(int argc, char** argv) {
  CLI::App app("citcat: instruction traces, recomputed from captures of a processor's bus");
  app.set_version_flag("--version", "citcat " CITCAT_VERSION);
  app.footer(
      "Run 'citcat COMMAND --help' for its options and an example.\n"
      "Exit status: 0 done, 1 the answer is no, 2 usage, 3 bad input, 4 I/O or system, "
      "130 interrupted.");
  app.require_subcommand(0, 1);  // none at all is reported below, in words of ours

  bool quiet = false;
  CommandRun chosen;
  for (const Command* command : command_list()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->footer(example_footer(command->example));
    const CommandRun run = command->define(*sub);
    sub->add_flag("-q,--quiet", quiet, "No notes and no progress; warnings and errors remain");
    sub->callback([&chosen, run] { chosen = run; });
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has exit codes of its own, 100 and up. Zero means that help or the version was asked
    // for, and exit() prints it.
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return ExitCode::ok;
    }
    throw UsageError(std::string(error.what()) + " (see citcat --help)");
  }
  if (!chosen) throw UsageError("no command given (see citcat --help)");
  if (const char* const setting = std::getenv("CITCAT_LOG")) {
    check_log_setting(setting, log_modules());
  }
  return chosen(Console(quiet));
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

}  // namespace
}  // namespace citcat

int main(int argc, char** argv) {
  citcat::keep_large_tables_apart();
  citcat::install_interrupt_handler();
  return static_cast<int>(citcat::run_and_report(argc, argv));
}
