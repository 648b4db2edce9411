// citcat slim: verifies a recording and saves it without its evidence.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "cli/commands/default_output.h"
#include "cli/commands/slim_run.h"
#include "cli/machine/machine_verdict.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/command_description.h"
#include "cli/placed_recording.h"
#include "cli/staged_output.h"
#include "events/archive/container.h"
#include "events/archive/recording_file.h"

namespace citcat {
namespace {

struct SlimOptions {
  std::string input, output;
  ProcessorArgument processor;
  bool json = false;
};

void print_result(const SlimOptions& options, std::uint64_t full_bytes, const SlimRun& verified,
                  std::uint64_t bytes, const Console& console) {
  if (options.json) {
    console.print_json({{"instructions", verified.instructions},
                        {"bytes", bytes},
                        {"full_bytes", full_bytes},
                        {"digests", verified.digests.size()},
                        {"adoptions", verified.adoptions.size()}});
  } else if (!is_standard_output(options.output)) {
    console.print_line(fmt::format("{}: {} bytes for {} instructions (with evidence {})",
                                   options.output, bytes, verified.instructions, full_bytes));
  }
}

/// All processors of a machine, which must agree with each other, too.
SlimRun write_slim_of_machine(const MachineFile& machine, const StagedOutput& output,
                              const Console& console) {
  const std::vector<RecordingFile> files = open_processors(machine);
  CrossCheck check = cross_check_of(machine, files);
  if (!cross_check(machine, files, check).clean()) {
    throw UsageError(machine.path() +
                     ": its processors contradict each other on their bus: only a verified "
                     "recording can go without its evidence (see citcat verify)");
  }
  SlimRun run = write_slim_of_all(machine.path(), machine.processors(), output, console);
  MachineInfo info = machine.info();
  // Without the order of the bus nothing follows from what others wrote.
  info.leaves_out = false;
  add_machine(output.path(), info, machine.notes());
  return run;
}

/// Whatever the recording holds.
SlimRun write_slim_of(const SlimOptions& options, const StagedOutput& output,
                      const Console& console) {
  if (const auto machine = find_machine(options.input))
    return write_slim_of_machine(*machine, output, console);
  const bool names_one = parse_recording_name(options.input).number.has_value();
  const std::size_t recordings = names_one ? 1 : RecordingFile::open(options.input).recordings();
  return recordings > 1 ? write_slim_of_all(options.input, recordings, output, console)
                        : write_slim(open_placed(options.input, console).file, output, console);
}

ExitCode run_slim(SlimOptions options, const Console& console) {
  options.input = options.processor.name(options.input);
  if (options.output.empty()) {
    options.output = default_output(options.input, ".slim.citcat");
    console.note("writes " + options.output);
  }
  require_own_output(options.output, options.json);
  StagedOutput output(options.output);
  const SlimRun verified = write_slim_of(options, output, console);
  const std::uint64_t full_bytes =
      ContainerReader(parse_recording_name(options.input).path).file_bytes();
  const auto bytes = std::filesystem::file_size(output.path());
  output.finish();
  print_result(options, full_bytes, verified, bytes, console);
  return ExitCode::ok;
}

CommandRun define_slim(const CommandParser& parser) {
  auto options = std::make_shared<SlimOptions>();
  parser.add_option("RECORDING", options->input, "Recording with its evidence").required();
  options->processor.define(parser);
  parser
      .add_option(
          "-o,--output", options->output,
          "Recording to write, - is the standard output (default: RECORDING.slim.citcat, here)")
      .type_name(kFileType);
  parser.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_slim(*options, console); };
}

}  // namespace

extern const Command kSlimCommand{"slim",
                                  "Verify a recording and replace its evidence with digests",
                                  "citcat slim boot.citcat -o boot-slim.citcat", define_slim};

}  // namespace citcat
