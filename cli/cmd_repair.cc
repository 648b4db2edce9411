#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "events/recording_check.h"
#include "formats/error.h"

namespace citcat {
namespace {

struct RepairOptions {
  std::string input, output;
  bool json = false;
};

/// Repairing in place keeps the damaged file under another name: it may be all there is.
std::string keep_original(const std::string& input) {
  const std::string kept = input + ".damaged";
  std::error_code error;
  std::filesystem::create_hard_link(input, kept, error);
  if (error) throw IoError(kept + ": cannot keep the damaged file there: " + error.message());
  return kept;
}

ExitCode run_repair(const RepairOptions& options, const Console& console) {
  const bool in_place = options.output.empty();
  const std::string source = in_place ? keep_original(options.input) : options.input;
  const std::string target = in_place ? options.input : options.output;
  const RecordingCheck check = repair_recording(source, target);
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
  } else {
    console.print(fmt::format("{}: {} chunks saved, {}\n", target, check.scan.intact.size(),
                              complete ? "nothing was lost" : "some content was lost"));
  }
  if (!complete) console.warn(target + ": some content was lost; readers of it will say so");
  return ExitCode::ok;
}

CommandRun define_repair(CLI::App& app) {
  auto options = std::make_shared<RepairOptions>();
  app.add_option("REC", options->input, "Damaged recording")->required();
  app.add_option("-o,--output", options->output,
                 "Recording to write (default: in place, REC.damaged keeps the damaged one)");
  app.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_repair(*options, console); };
}

}  // namespace

extern const Command kRepairCommand{"repair", "Save what is intact of a damaged recording",
                                    "citcat repair damaged.citcat -o saved.citcat", define_repair};

}  // namespace citcat
