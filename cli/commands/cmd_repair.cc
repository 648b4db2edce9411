// citcat repair: what is whole of a damaged archive, as a new one.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cli/command.h"
#include "cli/command_description.h"
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

/// Repairing in place keeps the damaged file under another name: it may be all there is.
class KeptOriginal {
 public:
  explicit KeptOriginal(const std::string& input) : path_(input + ".damaged") {
    std::error_code error;
    std::filesystem::create_hard_link(input, path_, error);
    if (error) {
      throw IoError(path_ + ": cannot keep the damaged file there: " + error.message());
    }
  }
  /// Unless something could be repaired, the second name has no use.
  ~KeptOriginal() {
    std::error_code ignored;
    if (!wanted_) std::filesystem::remove(path_, ignored);
  }
  KeptOriginal(const KeptOriginal&) = delete;
  KeptOriginal& operator=(const KeptOriginal&) = delete;
  const std::string& path() const { return path_; }
  void keep() { wanted_ = true; }

 private:
  std::string path_;
  bool wanted_ = false;
};

RecordingCheck repair_in_place(const std::string& input) {
  if (input == "-" || is_once_input(input)) {
    throw UsageError(input + ": cannot be repaired in place: -o names the file to write");
  }
  RecordingCheck check = check_recording(input);
  if (check.scan.sound()) return check;
  KeptOriginal original(input);
  check = repair_recording(original.path(), input);
  original.keep();
  return check;
}

RecordingCheck repair_to(const std::string& input, const std::string& output) {
  StagedOutput staged(output);
  RecordingCheck check = repair_recording(input, staged.path());
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
                 "Recording to write, - is the standard output (default: in place, REC.damaged "
                 "keeps the damaged one)")
      ->type_name(kFileType);
  app.add_flag("--json", options->json, "Print one line of JSON");
  return [options](const Console& console) { return run_repair(*options, console); };
}

}  // namespace

extern const Command kRepairCommand{"repair", "Save what is intact of a damaged recording",
                                    "citcat repair damaged.citcat -o saved.citcat", define_repair};

}  // namespace citcat
