#pragma once
// A Recording in an archive file (docs/formats/archive.md), written while the capture is read and
// read back without ever holding the evidence in memory.

#include <cstdint>
#include <memory>
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
  EvidenceMode evidence = EvidenceMode::full;
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
  void finish(const Recording& recording);

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
  /// A fresh cursor from the start, independent of others, valid beyond this object. Throws
  /// UsageError when the archive holds digests in place of the evidence.
  std::unique_ptr<EvidenceReader> evidence() const;
  /// Chunks, hashes and sizes.
  const ContainerReader& container() const { return *container_; }

 private:
  RecordingFile() = default;
  void load(const ChunkInfo& chunk);
  void require_chunks() const;

  std::shared_ptr<const ContainerReader> container_;
  Recording recording_;
  ArchiveMeta meta_;
  std::vector<std::string> lost_;
  bool has_meta_ = false;
  bool has_cpu_ = false;
};

}  // namespace citcat
