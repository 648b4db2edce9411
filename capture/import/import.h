#pragma once
// The whole way from capture files to a recording: open, find where it starts and with what state,
// decide which counts can be believed, derive, write.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capture/bus/source.h"
#include "capture/import/where.h"
#include "events/archive/recording_file.h"
#include "events/event_count.h"
#include "events/on_chip_marker.h"
#include "events/recording.h"

namespace citcat {

/// Counts to ignore although the capture has them, to show that a replay works without them.
enum class IgnoreCounts : std::uint8_t { none, all_but_interrupts, all };

struct ImportOptions {
  CaptureOptions capture;
  std::string initial_state_path;  ///< "" when the capture carries the state
  /// The state itself, in place of a file.
  std::optional<CpuState> initial_state;
  /// The state is going to be worked out from the bus: there need not be one. Of a processor with
  /// long mode all of it is then listed as unknown, and one that is there says what is known.
  bool recovers_state = false;
  std::optional<Where> start;  ///< nothing: the beginning, or the end of the state dump
  std::optional<Where> stop;   ///< nothing: the end of the capture, or the stop marker
  IgnoreCounts ignore_counts = IgnoreCounts::none;
  /// What the capture's positions count, where it does not say.
  std::optional<CountUnit> counts;
  /// What shows interrupts of devices on the processor's chip.
  std::vector<OnChipMarker> on_chip;
  /// Which segment of the capture becomes the recording. Nothing: every part of the capture that
  /// begins with a state of its own becomes one, all in one archive (import_capture() without
  /// state, start, stop and internal values), else the first segment.
  std::optional<std::uint32_t> segment;
  /// Keep names and hashes of the capture files, the format, the options, and warnings about the
  /// files. Without, captures of the same transactions give the same bytes.
  bool provenance = true;
  /// How hard the evidence is compressed (RecordingFileOptions::evidence_level), by
  /// import_capture().
  int level = RecordingFileOptions{}.evidence_level;
  /// Called now and then with the transactions read so far.
  std::function<void(std::uint64_t)> progress;
};

/// The result of an import: the fields of `citcat import --json`.
struct ImportResult {
  std::uint64_t recordings = 0;  ///< in the archive; the numbers are those of all of them
  std::string format;
  CpuModel cpu = CpuModel::unknown;
  std::uint64_t transactions = 0;
  std::optional<std::uint64_t> instructions;
  std::uint64_t image_bytes = 0;
  std::uint64_t interrupts = 0;
  std::uint64_t io_reads = 0;
  std::uint64_t external_writes = 0;
  Ending ending = Ending::unknown;  ///< of the last recording, or the first that was interrupted
  std::vector<std::string> warnings;
};
ImportResult summarize(const Recording& recording);
/// Adds the result of one more recording of the same archive.
void add_to(ImportResult& all, const ImportResult& one);
/// Removes everything from a recording that says which file it was imported from.
void strip_provenance(Recording& recording, const CaptureInfo& capture);

/// Derives a recording from an open capture. Evidence goes to `evidence` (may be null) on the way.
/// Throws UsageError for a start that the capture never reaches or a state that nothing gives,
/// FormatError for damaged captures.
Recording import_from(CaptureReader& reader, const ImportOptions& options,
                      EvidenceWriter* evidence);

/// The same from files to an archive. Nothing is left of it when something throws.
ImportResult import_capture(const std::vector<std::string>& paths, const ImportOptions& options,
                            const std::string& out_path);

/// A recording held in memory, for tests and tools.
struct ImportedRecording {
  Recording recording;
  std::vector<BusTransaction> evidence;
  std::unique_ptr<EvidenceReader> read_evidence() const;  ///< valid while this object lives
};
ImportedRecording import_to_memory(const std::vector<std::string>& paths,
                                   const ImportOptions& options);

}  // namespace citcat
