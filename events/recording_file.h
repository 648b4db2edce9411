#pragma once
// A Recording in an archive file (docs/formats/archive.md), written while the capture is read and
// read back without ever holding the evidence in memory.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "events/evidence_codec.h"
#include "events/recording.h"
#include "events/recording_codec.h"
#include "formats/container.h"

namespace citcat {

/// Who wrote an archive by default: the program and its version.
std::string default_engine_identity();

struct RecordingFileOptions {
  /// Program and engine versions, kept in the archive; a replay by another engine says so.
  std::string engine = default_engine_identity();
  /// With EvidenceMode::digests transactions given to write() are dropped.
  EvidenceMode evidence = EvidenceMode::full;
  /// See ArchiveMeta::lean.
  bool lean = false;
  /// zstd level of the evidence, the bulk of a full archive. Events and image use the best level.
  int evidence_level = 3;
};

/// Writes an archive. Evidence streams to the file as it comes; finish() adds the rest. The file
/// appears under its name when finish() returns; without it, nothing remains.
class RecordingFileWriter final : public EvidenceWriter {
 public:
  /// Throws IoError when the file cannot be made.
  explicit RecordingFileWriter(const std::string& path, RecordingFileOptions options = {});
  ~RecordingFileWriter() override;

  /// The next transaction in bus order. The data of reads and fetches is not kept.
  void write(const BusTransaction& transaction) override;
  /// Writes the recording, index and content hash and gives the file its name. Once.
  void finish(const Recording& recording) { finish(recording, {}); }
  /// The same with the digests of a verified replay.
  void finish(const Recording& recording, std::span<const ReplayDigest> digests);

 private:
  void flush_evidence();

  RecordingFileOptions options_;
  ContainerWriter container_;
  EvidenceColumns evidence_;
};

/// An archive opened for reading. The recording is in memory, the evidence is not.
class RecordingFile {
 public:
  /// Throws FormatError when the file is no archive, cut or damaged, IoError when it cannot be
  /// read. Everything but evidence and checkpoints is checked here, those when they are read.
  static RecordingFile open(const std::string& path);

  /// Its warnings include what the archive itself gives reason to warn of: an earlier repair that
  /// could not save everything, an interrupted append.
  const Recording& recording() const { return recording_; }
  const ArchiveMeta& meta() const { return meta_; }
  /// Digests of a verified replay, by position; empty when the archive has none.
  const std::vector<ReplayDigest>& digests() const { return digests_; }
  /// A fresh cursor from the start, independent of others, valid beyond this object. Throws
  /// UsageError when the archive holds digests in place of the evidence.
  std::unique_ptr<EvidenceReader> evidence() const;
  /// Checkpoints in the order in which they were added: their chunks, and the content of one.
  std::vector<ChunkInfo> checkpoints() const;
  std::vector<std::uint8_t> checkpoint(const ChunkInfo& chunk) const {
    return container_->read(chunk);
  }
  /// Indexes of series of checkpoints, in that order (events/checkpoint_series.h).
  std::vector<ChunkInfo> checkpoint_indexes() const;
  /// Chunks, hashes and sizes.
  const ContainerReader& container() const { return *container_; }

 private:
  RecordingFile() = default;
  void load(const ChunkInfo& chunk);
  std::vector<ChunkInfo> chunks_of(ChunkKind kind) const;
  void require_chunks() const;

  std::shared_ptr<const ContainerReader> container_;
  Recording recording_;
  ArchiveMeta meta_;
  std::vector<ReplayDigest> digests_;
  std::vector<std::string> lost_;
  bool has_meta_ = false;
  bool has_cpu_ = false;
};

/// Adds to a finished archive without writing anything in it again: what a later verification or
/// `checkpoint` found out. Nothing is added unless finish() returns.
class RecordingAppender {
 public:
  /// Throws FormatError when `path` is no archive.
  explicit RecordingAppender(const std::string& path) : container_(path) {}
  void add_digests(std::span<const ReplayDigest> digests);
  /// One checkpoint, at most kMaxChunkBytes (events/checkpoint_series.h). Returns where it lies.
  ChunkInfo add_checkpoint(std::vector<std::uint8_t> checkpoint);
  void add_checkpoint_index(std::vector<std::uint8_t> index);
  void finish() { container_.finish(); }

 private:
  ContainerAppender container_;
};

}  // namespace citcat
