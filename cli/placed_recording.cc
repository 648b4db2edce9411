#include "cli/placed_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/interrupt.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

constexpr std::array<Placement, 5> kKinds{Placement::unique, Placement::equivalent,
                                          Placement::ambiguous, Placement::none, Placement::absent};

std::uint64_t count_of(const std::vector<PlacedEvent>& events, Placement kind) {
  return static_cast<std::uint64_t>(std::count_if(
      events.begin(), events.end(), [kind](const PlacedEvent& e) { return e.placement == kind; }));
}

nlohmann::ordered_json position_json(const Position& position) {
  return {{"instruction", position.instruction}, {"iteration", position.iteration}};
}

void tell(const PlacementReport& report, const Console& console) {
  console.note("interrupts without a count: " + placements_text(report.events));
  const std::uint64_t ambiguous = count_of(report.events, Placement::ambiguous);
  if (ambiguous != 0) {
    console.warn(
        fmt::format("{} interrupts fit at several places, of which the first was taken: the "
                    "capture does not say which is right",
                    ambiguous));
  }
  const std::uint64_t absent = count_of(report.events, Placement::absent);
  if (absent != 0) {
    console.warn(
        fmt::format("{} times the program itself wrote or read the marker of an interrupt: there "
                    "was no interrupt",
                    absent));
  }
  if (!report.divergence) return;
  const Divergence& d = *report.divergence;
  console.warn(fmt::format("{} interrupts have no place: at instruction {}, {}",
                           count_of(report.events, Placement::none), d.position.instruction,
                           d.reason));
  if (!report.given_up.empty()) {
    console.warn("to give the search another limit: citcat place --time SECONDS, 0 for none");
  }
}

}  // namespace

std::string placements_text(const std::vector<PlacedEvent>& events) {
  std::string text;
  for (const Placement kind : kKinds) {
    const std::uint64_t n = count_of(events, kind);
    if (n == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", n, kind == Placement::none ? "not placed" : placement_name(kind));
  }
  return text;
}

nlohmann::ordered_json placements_json(const std::vector<PlacedEvent>& events) {
  nlohmann::ordered_json json;
  for (const Placement kind : kKinds) json[placement_name(kind)] = count_of(events, kind);
  json["events"] = nlohmann::ordered_json::array();
  for (const PlacedEvent& e : events) {
    if (e.placement == Placement::unique) continue;
    nlohmann::ordered_json event;
    event["interrupt"] = e.interrupt;
    event["placement"] = placement_name(e.placement);
    if (e.placement != Placement::none) {
      event["position"] = position_json(e.position);
      event["candidates"] = e.candidates;
      event["endless"] = e.more;
      event["others"] = nlohmann::ordered_json::array();
      for (const Position& other : e.others) event["others"].push_back(position_json(other));
    }
    json["events"].push_back(std::move(event));
  }
  return json;
}

RecordingFile open_with_hints(const std::string& path, const std::string& hints) {
  RecordingFile file = RecordingFile::open(path);
  if (!hints.empty()) file.apply(load_hints(hints), hints);
  return file;
}

PlacedRecording open_placed(const std::string& path, const Console& console,
                            const std::string& hints, TimeBudget* time) {
  RecordingFile file = open_with_hints(path, hints);
  tell_of_others(file, path, console);
  return place_events_of(std::move(file), console, time);
}

void tell_of_others(const RecordingFile& file, const std::string& path, const Console& console) {
  if (file.recordings() < 2 || parse_recording_name(path).number) return;
  console.warn(fmt::format("{} holds {} recordings: this is the first; {}@1 is the next one", path,
                           file.recordings(), path));
}

PlacedRecording place_events_of(RecordingFile file, const Console& console, TimeBudget* time) {
  PlacedRecording placed{std::move(file), std::nullopt};
  Progress progress = console.progress("placing interrupts", "instructions");
  PlacerOptions options;
  TimeBudget usual(kPlacingSeconds, TimeBudget::Counts::since_gain);
  options.time = time != nullptr ? time : &usual;
  options.progress = [&progress, time](Position now) {
    if (time == nullptr) check_interrupt();
    progress.show(now.instruction);
  };
  placed.search = place_events(placed.file, options);
  if (placed.search) tell(*placed.search, console);
  return placed;
}

void require_file_to_add_to(const std::string& recording) {
  if (recording != "-" && !is_once_input(recording)) return;
  throw UsageError(recording +
                   ": the result is kept in the recording, so the recording must be a file");
}

bool keep_placements(const std::string& path, const PlacedRecording& placed) {
  // Positions up to where the replay diverged from the evidence would make every later replay
  // diverge there without saying why.
  if (!placed.search || needs_placement(placed.file.recording())) return false;
  RecordingAppender archive(path, placed.file.identity());
  archive.add_placements(placed.search->events);
  archive.finish();
  return true;
}

}  // namespace citcat
