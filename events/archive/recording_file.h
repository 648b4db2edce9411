#pragma once
// A Recording in an archive file (docs/formats/archive.md). The evidence is never in memory as a
// whole: it is written while the capture is read, and read in pieces.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/archive/chunk.h"
#include "events/archive/recording_parts.h"
#include "events/names/symbol_module.h"

namespace citcat {

class ByteReader;
struct ChunkRow;
class ContainerAppender;
class ContainerReader;
class ContainerWriter;
class EvidenceEncoder;

/// The default writer of an archive: the program and its version.
std::string default_engine_identity();

struct RecordingFileOptions {
  /// Versions of the program and its engine, kept in the archive.
  std::string engine = default_engine_identity();
  /// With EvidenceMode::digests transactions given to write() are dropped.
  EvidenceMode evidence = EvidenceMode::full;
  /// See ArchiveMeta::lean.
  bool lean = false;
  /// The file is temporary: write it quickly rather than small.
  bool passing = false;
  /// zstd level of the evidence, which is most of a full archive, from kFastest to kSmallest.
  /// Everything else has a level of its own.
  int evidence_level = 1;
  static constexpr int kFastest = -7, kSmallest = 19;
};

/// Writes an archive. Evidence goes to the file as it comes; finish() adds the rest. The file
/// appears under its name when finish() returns; without finish(), nothing remains.
class RecordingFileWriter final : public EvidenceWriter {
 public:
  /// Throws IoError when the file cannot be made.
  explicit RecordingFileWriter(const std::string& path, RecordingFileOptions options = {});
  ~RecordingFileWriter() override;

  /// The next transaction in bus order. The data of reads and fetches is not kept.
  void write(const BusTransaction& transaction) override { write_all({&transaction, 1}); }
  void write_all(std::span<const BusTransaction> transactions) override;
  void write_run(const AccessRun& run) override;
  std::size_t events_at_a_time() const override;
  void write_events(const Events& events) override;
  /// Writes the recording, index and content hash and gives the file its name. Once.
  void finish(const Recording& recording) { finish(recording, {}); }
  /// The same with the digests of a verified replay.
  void finish(const Recording& recording, std::span<const ReplayDigest> digests);

  // For an archive of several recordings, the segments of one capture: call select() before the
  // transactions of a recording, any number of times, add() once for each, and close().

  /// Recordings have numbers from 0. Number 0 is selected at first.
  void select(std::size_t number);
  /// Everything of the selected recording that is not evidence.
  void add(const Recording& recording, std::span<const ReplayDigest> digests = {});
  /// Digests of the selected recording that were not known when it was added.
  void add_digests(std::span<const ReplayDigest> digests);
  /// Names for the selected recording's addresses.
  void add_symbols(std::span<const SymbolModule> modules);
  /// Writes index and content hash and gives the file its name. Once.
  void close();

 private:
  void add_evidence();
  void add_events(const std::vector<Interrupt>& interrupts,
                  const std::vector<ExternalWrite>& external_writes,
                  const std::vector<IoRead>& io_reads);
  void mark();

  RecordingFileOptions options_;
  std::unique_ptr<ContainerWriter> container_;
  std::size_t selected_ = 0;                   ///< recording that write() and add() are for
  std::size_t named_ = 1;                      ///< recordings that were selected
  std::size_t marked_ = 0;                     ///< recording to which the next chunk would belong
  std::unique_ptr<EvidenceEncoder> evidence_;  ///< of the unfinished chunk
};

/// The parts of "x.citcat@2": a file and a number. If a file has that whole name, the name has no
/// number.
struct RecordingName {
  std::string path;
  std::optional<std::size_t> number;
};
RecordingName parse_recording_name(const std::string& name);

/// Clocks of the monitor, from one transaction to another.
struct ClockSpan {
  std::uint64_t first = 0, last = 0;
};

/// An archive opened for reading. The recording is in memory, the evidence is not.
class RecordingFile {
 public:
  /// Throws FormatError if the file is no archive, is cut or damaged, and IoError if it cannot be
  /// read. Evidence, checkpoints and names are checked when they are read, everything else here.
  ///
  /// An archive may hold several recordings. "x.citcat@2" names the one with number 2 of x.citcat;
  /// the name alone means number 0. UsageError when there is none with this number.
  static RecordingFile open(const std::string& path);
  /// The number of recordings in the archive, and the number of this one.
  std::size_t recordings() const { return recordings_; }
  std::size_t number() const { return number_; }

  /// Its warnings include those about the archive itself: an earlier repair that could not save
  /// everything, an interrupted append.
  const Recording& recording() const { return parts_.recording; }
  /// The place in memory that an address in a checkpoint of the archive means. Earlier versions had
  /// other addresses for memory beyond 4 GiB; everything else has been translated.
  PhysAddr meant(PhysAddr at) const;
  const ArchiveMeta& meta() const { return parts_.meta; }
  /// Digests of a verified replay, by position; empty when the archive has none.
  const std::vector<ReplayDigest>& digests() const { return parts_.digests; }
  /// The results of a search for interrupts that were not counted; recording() has the positions
  /// that it found.
  const std::vector<PlacedEvent>& placements() const { return parts_.placements; }
  /// Corrections from the archive and from apply(). recording() and evidence() are corrected.
  const std::vector<Hint>& hints() const { return parts_.hints; }
  /// Applies the hints of `file` to this object; the archive does not change. Throws FormatError
  /// with `source` if they are for another recording, and UsageError if a hint is about something
  /// that this recording does not have.
  void apply(const HintFile& file, const std::string& source);
  /// Transactions that a comparison must not judge, ascending (ComparisonPolicy::waived).
  std::vector<std::uint64_t> waived() const;
  /// Transactions, ascending, that show a single byte known to have been changed by someone else:
  /// another processor, or an emulator whose monitor says so (ComparisonPolicy::told_changes).
  std::vector<std::uint64_t> told_changes() const;
  /// Gives recording() the schedule that a search made from its own one, with the search's results.
  /// The file does not change.
  void set_schedule(Schedule schedule, std::vector<PlacedEvent> placements);
  /// A new reader from the beginning, independent of others; it may outlive this object. Throws
  /// UsageError if the archive has digests in place of the evidence.
  std::unique_ptr<EvidenceReader> evidence() const;
  /// The captured clocks of the first and the last transaction that has one. Nullopt if no
  /// transaction has a clock, or if the archive has digests in place of the evidence. Throws
  /// FormatError.
  std::optional<ClockSpan> evidence_clocks() const;
  /// Checkpoints in the order in which they were added: their chunks, and the content of one.
  std::vector<ChunkInfo> checkpoints() const;
  std::vector<std::uint8_t> checkpoint(const ChunkInfo& chunk) const;
  /// Indexes of series of checkpoints, in that order (events/archive/checkpoint_series.h).
  std::vector<ChunkInfo> checkpoint_indexes() const;
  /// Names for addresses, by module, in the order in which they were added. Each call reads and
  /// checks them. Throws FormatError.
  std::vector<SymbolModule> symbols() const;
  /// XXH3-128 of the recording without its provenance, warnings, writer, checkpoints, digests and
  /// names: it is the same for every form of one capture. Without `hinted`, also without the hints.
  Hash128 identity(bool hinted = true) const;
  /// Chunks, hashes and sizes.
  const ContainerReader& container() const { return *container_; }

 private:
  RecordingFile() = default;
  void select_chunks(bool named);
  void load_all();
  void load(const ChunkInfo& chunk);
  void allow(const ChunkInfo& chunk, const ChunkRow& row, ByteReader in);
  std::vector<ChunkInfo> chunks_of(ChunkKind kind) const;
  void require_chunks() const;

  std::shared_ptr<const ContainerReader> container_;
  RecordingParts parts_;
  std::vector<ChunkInfo> chunks_;  ///< of this recording
  std::size_t recordings_ = 1, number_ = 0;
  std::uint64_t held_ = 0;  ///< bytes of memory of what is loaded, without packed events
};

/// Adds the results of a later verification or of `checkpoint` to a finished archive, without
/// rewriting any of it. Nothing is added unless finish() returns.
class RecordingAppender {
 public:
  /// `path` names a recording as for RecordingFile::open(). Waits until nobody else adds to the
  /// file. `recording` is the identity of the recording when it was opened. Throws FormatError if
  /// `path` is no archive, and IoError if it has become another recording.
  explicit RecordingAppender(const std::string& path,
                             const std::optional<Hash128>& recording = std::nullopt);
  ~RecordingAppender();
  void add_digests(std::span<const ReplayDigest> digests);
  /// One checkpoint, at most kMaxChunkBytes (events/archive/checkpoint_series.h). Returns where it
  /// lies.
  ChunkInfo add_checkpoint(std::vector<std::uint8_t> checkpoint);
  void add_checkpoint_index(std::vector<std::uint8_t> index);
  /// The results of a search for interrupts without a count. They replace those of an earlier
  /// search.
  void add_placements(std::span<const PlacedEvent> events);
  /// Corrections that a person has reviewed; opening the archive applies them.
  void add_hints(const HintFile& hints);
  /// Names for addresses, after those that are there.
  void add_symbols(std::span<const SymbolModule> modules);
  void finish();

 private:
  std::unique_ptr<ContainerAppender> container_;
};

}  // namespace citcat
