#pragma once
// A Recording in an archive file (docs/formats/archive.md), written while the capture is read and
// read back without ever holding the evidence in memory.

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

/// Who wrote an archive by default: the program and its version.
std::string default_engine_identity();

struct RecordingFileOptions {
  /// Program and engine versions, kept in the archive; a replay by another engine says so.
  std::string engine = default_engine_identity();
  /// With EvidenceMode::digests transactions given to write() are dropped.
  EvidenceMode evidence = EvidenceMode::full;
  /// See ArchiveMeta::lean.
  bool lean = false;
  /// It is read by whoever wrote it and then dropped: written quickly, not small.
  bool passing = false;
  /// zstd level of the evidence, the bulk of a full archive, kFastest to kSmallest. What is
  /// written beside evidence has a level of its own.
  int evidence_level = 1;
  static constexpr int kFastest = -7, kSmallest = 19;
};

/// Writes an archive. Evidence streams to the file as it comes; finish() adds the rest. The file
/// appears under its name when finish() returns; without it, nothing remains.
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

  // An archive of several recordings, the segments of one capture: select() the one that what
  // follows belongs to, as often as wanted, add() each once, close().

  /// Recordings are numbered from 0, which is selected at first.
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
  std::size_t marked_ = 0;                     ///< recording that the next chunk would be taken for
  std::unique_ptr<EvidenceEncoder> evidence_;  ///< of the chunk that grows
};

/// What "x.citcat@2" means: the file and the number. A file that has such a name is meant itself.
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
  /// Throws FormatError when the file is no archive, cut or damaged, IoError when it cannot be
  /// read. Everything but evidence, checkpoints and names is checked here, those when they are
  /// read.
  ///
  /// An archive may hold several recordings. "x.citcat@2" names the one with number 2 of x.citcat;
  /// the name alone means number 0. UsageError when there is none with this number.
  static RecordingFile open(const std::string& path);
  /// Recordings in the archive, and which one this is.
  std::size_t recordings() const { return recordings_; }
  std::size_t number() const { return number_; }

  /// Its warnings include what the archive itself gives reason to warn of: an earlier repair that
  /// could not save everything, an interrupted append.
  const Recording& recording() const { return parts_.recording; }
  const ArchiveMeta& meta() const { return parts_.meta; }
  /// Digests of a verified replay, by position; empty when the archive has none.
  const std::vector<ReplayDigest>& digests() const { return parts_.digests; }
  /// What a search found out about interrupts that were not counted. Their positions in
  /// recording() are those found.
  const std::vector<PlacedEvent>& placements() const { return parts_.placements; }
  /// Corrections that came with the archive or with apply(); recording() and evidence() have them.
  const std::vector<Hint>& hints() const { return parts_.hints; }
  /// Applies `file`'s hints here; the archive stays as it is. Throws FormatError with `source` when
  /// they are for another recording, UsageError when they mean something this one does not have.
  void apply(const HintFile& file, const std::string& source);
  /// Transactions that a comparison is to waive, ascending (ComparisonPolicy::waived).
  std::vector<std::uint64_t> waived() const;
  /// Transactions that show a single byte which others are known to have changed, ascending:
  /// another processor, or an emulator whose monitor says so (ComparisonPolicy::told_changes).
  std::vector<std::uint64_t> told_changes() const;
  /// From now on recording() has the schedule that a search made of its own, which found out
  /// `placements`. The file stays as it is.
  void set_schedule(Schedule schedule, std::vector<PlacedEvent> placements);
  /// A fresh cursor from the start, independent of others, valid beyond this object. Throws
  /// UsageError when the archive holds digests in place of the evidence.
  std::unique_ptr<EvidenceReader> evidence() const;
  /// Clocks of the first and of the last transaction that has one, as captured; read from the two
  /// ends of the evidence. Nullopt where no transaction has one, or digests stand in its place.
  /// Throws FormatError.
  std::optional<ClockSpan> evidence_clocks() const;
  /// Checkpoints in the order in which they were added: their chunks, and the content of one.
  std::vector<ChunkInfo> checkpoints() const;
  std::vector<std::uint8_t> checkpoint(const ChunkInfo& chunk) const;
  /// Indexes of series of checkpoints, in that order (events/archive/checkpoint_series.h).
  std::vector<ChunkInfo> checkpoint_indexes() const;
  /// Names for addresses, by module, in the order in which they were added; none where the archive
  /// has none. Read and checked here, anew with each call. Throws FormatError.
  std::vector<SymbolModule> symbols() const;
  /// XXH3-128 of the recording without its provenance, its warnings and who wrote it, and without
  /// checkpoints, digests and names: the same for every rendering of one capture. Unless `hinted`,
  /// also without the hints.
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
  std::uint64_t held_ = 0;  ///< bytes of memory of what is loaded, but for packed events
};

/// Adds to a finished archive without writing anything in it again: what a later verification or
/// `checkpoint` found out. Nothing is added unless finish() returns.
class RecordingAppender {
 public:
  /// Names a recording as RecordingFile::open() does. Waits for who else adds to the file.
  /// `recording`: the identity of what is added to, as it was when it was opened. Throws
  /// FormatError when `path` is no archive, IoError when it is another recording by now.
  explicit RecordingAppender(const std::string& path,
                             const std::optional<Hash128>& recording = std::nullopt);
  ~RecordingAppender();
  void add_digests(std::span<const ReplayDigest> digests);
  /// One checkpoint, at most kMaxChunkBytes (events/archive/checkpoint_series.h). Returns where it
  /// lies.
  ChunkInfo add_checkpoint(std::vector<std::uint8_t> checkpoint);
  void add_checkpoint_index(std::vector<std::uint8_t> index);
  /// What a search found out about interrupts without a count; counts from then on, in place of
  /// what an earlier one found.
  void add_placements(std::span<const PlacedEvent> events);
  /// Corrections that a person has reviewed; opening the archive applies them.
  void add_hints(const HintFile& hints);
  /// Names for addresses, behind those that are there.
  void add_symbols(std::span<const SymbolModule> modules);
  void finish();

 private:
  std::unique_ptr<ContainerAppender> container_;
};

}  // namespace citcat
