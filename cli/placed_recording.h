#pragma once
// Recordings whose interrupts have no counts: the commands that replay search for the positions
// first.

#include <optional>
#include <string>

#include "cli/console.h"
#include "events/archive/recording_file.h"
#include "replay/infer/places/event_placer.h"
#include "replay/session/time_budget.h"

namespace citcat {

/// An archive opened for a replay.
struct PlacedRecording {
  RecordingFile file;
  /// What the search for positions gave; nothing where none was needed.
  std::optional<PlacementReport> search;
};

/// Seconds that a search for the place of an interrupt may go on without getting further.
inline constexpr unsigned kPlacingSeconds = 120;

/// Opens an archive with the hints of the file `hints`, where that is not empty.
RecordingFile open_with_hints(const std::string& path, const std::string& hints);
/// The same and, when interrupts have no position and the evidence is there, searches for
/// them. Says on `console` what came of it. With a `time` of the caller's, Ctrl-C ends the search
/// with what it has (TimeBudget::End::interrupted); without one it throws Interrupted, and the
/// search has kPlacingSeconds.
PlacedRecording open_placed(const std::string& path, const Console& console,
                            const std::string& hints = "", TimeBudget* time = nullptr);
/// Warns where the archive holds others and `path` names none of them.
void tell_of_others(const RecordingFile& file, const std::string& path, const Console& console);
/// The same as open_placed() with an archive that is open already.
PlacedRecording place_events_of(RecordingFile file, const Console& console,
                                TimeBudget* time = nullptr);

/// Adds to the archive what a search found, when it placed every interrupt; else returns false.
/// Throws UsageError when nothing can be added to `recording`, which is then no file of its own.
void require_file_to_add_to(const std::string& recording);
bool keep_placements(const std::string& path, const PlacedRecording& placed);

/// {"unique","equivalent","ambiguous","none"}, and for each that is not unique where it may be.
nlohmann::ordered_json placements_json(const std::vector<PlacedEvent>& events);
/// The same as one line: "9 unique, 1 equivalent".
std::string placements_text(const std::vector<PlacedEvent>& events);

}  // namespace citcat
