// The program: picks the command, and is the one place where exceptions become exit codes.

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "formats/io/error.h"
#include "formats/io/log.h"

namespace citcat {
namespace {

/// Parses the command line and runs the command it names.
ExitCode run_program(int argc, char** argv) {
  CommandLine line;
  const CommandRun run = line.parse(argc, argv);
  if (const char* const setting = std::getenv("CITCAT_LOG")) {
    check_log_setting(setting, log_modules());
  }
  return run(Console(line.quiet()));
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
  citcat::install_interrupt_handler();
  return static_cast<int>(citcat::run_and_report(argc, argv));
}
