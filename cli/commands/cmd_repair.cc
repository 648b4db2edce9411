// citcat repair: saves the intact parts of a damaged archive as a new one.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/parsing/command_description.h"
#include "cli/staged_output.h"
#include "events/archive/recording_check.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

struct RepairOptions {
  std::string input, output;
  bool json = false;
};

/// Gives the damaged file a second name: it may be all there is. Only when a repaired one is ready
/// to take its own.
void keep_original(const std::string& input) {
  const std::string kept = input + ".damaged";
  std::error_code error;
  // Interrupted between the two, an earlier run has left this name of it.
  if (std::filesystem::equivalent(input, kept, error)) return;
  std::filesystem::create_hard_link(input, kept, error);
  if (!error) return;
  throw IoError(kept + ": cannot keep the damaged file there: " + error.message());
}

RecordingCheck repair_in_place(const std::string& input) {
  if (input == "-" || is_once_input(input)) {
    throw UsageError(input + ": cannot be repaired in place: -o names the file to write");
  }
  RecordingCheck check = check_recording(input, check_interrupt);
  if (check.scan.sound()) return check;
  StagedOutput staged(input);
  check = repair_recording(input, staged.path(), check_interrupt);
  keep_original(followed_output(input));
  staged.finish();
  return check;
}

RecordingCheck repair_to(const std::string& input, const std::string& output) {
  StagedOutput staged(output);
  RecordingCheck check = repair_recording(input, staged.path(), check_interrupt);
  staged.finish();
  return check;
}

ExitCode run_repair(const RepairOptions& options, const Console& console) {
  require_own_output(options.output, options.json);
  const bool in_place = options.output.empty();
  const std::string target = in_place ? options.input : options.output;
  const RecordingCheck check =
      in_place ? repair_in_place(options.input) : repair_to(options.input, options.output);
  for (const ContainerDamage& damage : check.scan.damage) {
    console.note(fmt::format("{}:{}: {}", options.input, damage.offset, damage.message));
  }
  const bool complete = check.scan.complete || check.scan.sound();
  if (options.json) {
    nlohmann::ordered_json json;
    json["saved_chunks"] = check.scan.intact.size();
    json["damage"] = check.scan.damage.size();
    json["complete"] = complete;
    console.print_json(json);
  } else if (!is_standard_output(target)) {
    console.print_line(fmt::format("{}: {} chunks saved, {}", target, check.scan.intact.size(),
                                   complete ? "nothing was lost" : "some content was lost"));
  }
  if (!complete) console.warn(target + ": some content was lost; readers of it will say so");
  return ExitCode::ok;
}

CommandRun define_repair(const CommandParser& parser) {
  auto options = std::make_shared<RepairOptions>();
  parser.add_option("RECORDING", options->input, "Damaged recording").required();
  parser
      .add_option("-o,--output", options->output,
                  "Recording to write, - is the standard output (default: in place; "
                  "RECORDING.damaged keeps the damaged one)")
      .type_name(kFileType);
  parser.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_repair(*options, console); };
}

}  // namespace

extern const Command kRepairCommand{"repair", "Save the intact parts of a damaged recording",
                                    "citcat repair damaged.citcat -o saved.citcat", define_repair};

}  // namespace citcat
