// citcat demo: the whole way from a capture to a trace that is proven right, on a sample.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "cli/analysis/analysis_output.h"
#include "cli/analysis/analysis_run.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/demo/story.h"
#include "cli/parsing/command_description.h"
#include "cli/placed_recording.h"
#include "formats/io/error.h"
#include "formats/text/shell_word.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

struct DemoArguments {
  std::string folder = "citcat-demo", samples;
};

/// --samples, then $CITCAT_SAMPLES, then where the package and a source tree have them, then the
/// folder "samples" here.
fs::path sample_folder(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* const named = std::getenv("CITCAT_SAMPLES")) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"../share/citcat/samples", "../../samples"}) {
    if (fs::exists(program / place / "ibm5150", error)) return fs::canonical(program / place);
  }
  if (fs::exists("samples/ibm5150", error)) return "samples";
  throw IoError("the samples were not found; name their folder with --samples");
}

/// Shows a command as one would type it, and runs it. Throws Error when it did not do its work.
void run_shown(const std::vector<std::string>& words, const Console& console) {
  std::string shown = "\n$ citcat";
  std::vector<const char*> arguments{"citcat"};
  for (const std::string& word : words) {
    shown += " " + shell_word(word);
    arguments.push_back(word.c_str());
  }
  console.print(shown + "\n");
  console.flush();
  CommandLine line;
  const CommandRun run = line.parse(static_cast<int>(arguments.size()), arguments.data());
  if (run(console) != ExitCode::ok) throw InternalError("the sample gave another result: " + shown);
  console.flush();
}

void tell_story(const std::string& recording, const Console& console) {
  const PlacedRecording placed = open_placed(recording, console);
  AnalysisPlan plan;
  plan.tools = story_tools();
  const AnalysisResult result = run_analysis(placed.file, plan, true, console);
  const nlohmann::ordered_json found =
      analysis_json(*result.analysis, 0, result.report.instructions, result.report, {});
  console.print("\nThis is what the machine did:\n");
  for (const std::string& sentence : story(found.at("tools")))
    console.print("  " + sentence + "\n");
}

ExitCode run_demo(const DemoArguments& arguments, const Console& console) {
  const fs::path sample = sample_folder(arguments.samples) / "ibm5150";
  const fs::path folder = arguments.folder;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(folder.string() + ": " + error.message());
  const std::string recording = folder / "pc.citcat", page = folder / "pc.html";

  console.print(
      "An IBM PC of 1981 draws the first frames of a demo's screen. Somebody held a logic "
      "analyser\n"
      "to the pins of its 8088. From what the pins showed, citcat computes every instruction.\n");
  run_shown({"import", sample / "area5150.sr", "--cpu", "8088", "--initial-state",
             sample / "state.json", "--start", "interrupt:0", "-o", recording},
            console);
  run_shown({"cat", recording, "--format", "text", "--from", "36", "--to", "48"}, console);
  tell_story(recording, console);
  console.print("\nDoes the replay agree with every transaction that the analyser saw?\n");
  run_shown({"verify", recording}, console);
  try {
    run_shown({"view", recording, "--export", page}, console);
    console.print("\nOpen " + page +
                  " in a browser: go to any moment of the run, forwards and backwards.\n");
  } catch (const UsageError& absent) {  // a build without the part "view"
    console.note(std::string("no page: ") + absent.what());
  }
  console.print("Next: citcat view " + shell_word(recording) + ", citcat debug " +
                shell_word(recording) + ", or citcat help.\n");
  return ExitCode::ok;
}

CommandRun define_demo(const CommandParser& parser) {
  auto arguments = std::make_shared<DemoArguments>();
  parser
      .add_option("-o,--output", arguments->folder,
                  "Folder for the recording and the page; made if it is missing")
      .type_name("FOLDER")
      .show_default();
  parser
      .add_option("--samples", arguments->samples,
                  "Folder of the samples (default: those that came with the program)")
      .type_name("FOLDER");
  return [arguments](const Console& console) { return run_demo(*arguments, console); };
}

}  // namespace

extern const Command kDemoCommand{"demo",
                                  "Show what this program does with the capture of a real PC",
                                  "citcat demo -o pc", define_demo};

}  // namespace citcat
