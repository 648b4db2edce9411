// citcat place: finds the positions of interrupts that have no counts, and adds them to the
// archive.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/machine/each_processor.h"
#include "cli/machine/processor_argument.h"
#include "cli/placed_recording.h"
#include "events/archive/recording_file.h"

namespace citcat {
namespace {

struct PlaceArguments {
  std::string recording;
  ProcessorArgument processor;
  bool json = false;
  unsigned time = kPlacingSeconds;
};

void print_json(const PlacedRecording& placed, const Console& console) {
  const RecordingFile& file = placed.file;
  nlohmann::ordered_json json;
  json["interrupts"] = file.recording().interrupts.size();
  json["placed"] = placements_json(file.placements());
  json["searched"] = placed.search.has_value();
  json["trials"] = placed.search ? placed.search->tried : 0;
  json["given_up"] = nullptr;
  if (placed.search && !placed.search->given_up.empty()) json["given_up"] = placed.search->given_up;
  json["instructions"] = placed.search ? placed.search->instructions : 0;
  console.print_json(json);
}

void print_text(const PlacedRecording& placed, const Console& console) {
  const RecordingFile& file = placed.file;
  const std::string found = placements_text(file.placements());
  console.print(fmt::format("{} interrupts, {}\n", file.recording().interrupts.size(),
                            found.empty() ? "all counted" : found));
  for (const PlacedEvent& e : file.placements()) {
    if (e.placement == Placement::absent) {
      console.print(
          fmt::format("  interrupt {:<6} absent: its marker is the program's own\n", e.interrupt));
      continue;
    }
    if (e.placement == Placement::unique || e.placement == Placement::none) continue;
    console.print(fmt::format("  interrupt {:<6} {}: instruction {}, {}{} places fit\n",
                              e.interrupt, placement_name(e.placement), e.position.instruction,
                              e.candidates, e.more ? " and more" : ""));
  }
}

ExitCode place_one(const PlaceArguments& arguments, const Console& console) {
  TimeBudget time(arguments.time, TimeBudget::Counts::since_gain, interrupt_requested);
  const PlacedRecording placed = open_placed(arguments.recording, console, "", &time);
  const bool complete = !needs_placement(placed.file.recording());
  keep_placements(arguments.recording, placed);
  if (arguments.json) {
    print_json(placed, console);
  } else {
    print_text(placed, console);
  }
  if (time.end() == TimeBudget::End::interrupted) return ExitCode::interrupted;
  return complete ? ExitCode::ok : ExitCode::answer_is_no;
}

ExitCode run_place(PlaceArguments arguments, const Console& console) {
  require_file_to_add_to(arguments.recording);
  arguments.recording = arguments.processor.name(arguments.recording);
  const std::optional<MachineFile> machine = find_machine(arguments.recording);
  if (!machine) return place_one(arguments, console);
  return for_each_processor(*machine, console, arguments.json, 1,
                            [&](std::size_t, const std::string& name, const Console& its) {
                              arguments.recording = name;
                              return place_one(arguments, its);
                            });
}

CommandRun define_place(const CommandParser& parser) {
  auto arguments = std::make_shared<PlaceArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording whose interrupts to place")
      .required();
  arguments->processor.define(parser);
  parser
      .add_option("--time", arguments->time,
                  "Seconds without progress after which the search gives up; 0: never")
      .show_default();
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_place(*arguments, console); };
}

}  // namespace

extern const Command kPlaceCommand{
    "place", "Find the positions of interrupts that the capture does not give, and keep them",
    "citcat place boot.citcat", define_place};

}  // namespace citcat
