#include "events/archive/recording_check.h"

#include <algorithm>

#include "events/archive/checkpoint_series.h"
#include "events/archive/machine_file.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {

namespace {

/// More than an archive needs to be known by.
constexpr std::size_t kMagicLook = 16;

/// Decodes the evidence, of which there must be as much as was derived from.
void decode_evidence(const RecordingFile& file, const std::function<void()>& between) {
  const auto evidence = file.evidence();
  const std::uint64_t expected = file.recording().totals.transactions;
  // No more is decoded than makes the answer sure: a small file may claim to hold any number.
  const std::uint64_t enough = expected + file.hints().size() + 1;
  std::uint64_t count = 0;
  for (BusTransaction t; count < enough && evidence->next(t);) {
    if (++count % kEvidenceChunkTransactions == 0 && between) between();
  }
  // Reviewed hints leave transactions out and add some.
  const bool changed =
      std::ranges::any_of(file.hints(), [](const Hint& hint) { return hint.concerns_evidence(); });
  if (changed || count == expected) return;
  throw FormatError(file.container().path(), 0,
                    "evidence: expected " + std::to_string(expected) + " transactions, found " +
                        (count == enough ? "more" : std::to_string(count)));
}

/// A hash that is right proves that the bytes are what was written, not that what was written makes
/// sense; so everything is decoded too. Throws FormatError where it does not.
void decode_everything(const std::string& path, const std::function<void()>& between) {
  const std::optional<MachineFile> machine = MachineFile::find(path);
  const std::string first = machine ? machine->name(0) : path;
  const std::size_t recordings = RecordingFile::open(first).recordings();
  for (std::size_t i = 0; i < recordings; ++i) {
    const RecordingFile file = RecordingFile::open(path + "@" + std::to_string(i));
    if (file.meta().evidence == EvidenceMode::full) decode_evidence(file, between);
    static_cast<void>(file.symbols());
    static_cast<void>(file.waived());
    static_cast<void>(file.told_changes());
    for (const CheckpointSeries& series : CheckpointSeries::read(file)) {
      series.check(file);
      if (between) between();
    }
  }
}

/// What an earlier repair could not save.
std::vector<std::string> losses_of(const ContainerReader& archive) {
  std::vector<std::string> losses;
  for (const ChunkInfo& chunk : archive.chunks()) {
    if (chunk.kind != kLostChunk) continue;
    const std::vector<std::uint8_t> payload = archive.read(chunk);
    ByteReader in(payload, archive.path(), chunk.offset);
    losses.push_back("lost before a repair: " + decode_lost_chunk(in).message);
  }
  return losses;
}

/// What has neither the beginning of an archive nor a chunk of one is no damaged recording.
void require_recording(const std::string& path, const ContainerScan& scan) {
  if (scan.version != 0 || !scan.intact.empty()) return;
  const bool begins_as_one = is_container(read_head(path, kMagicLook));
  if (begins_as_one) return;
  throw FormatError(path, 0,
                    "expected a recording, found " + (scan.file_bytes == 0
                                                          ? std::string("an empty file")
                                                          : std::string("another kind of file")));
}

bool has_kind(const ContainerScan& scan, ChunkKind kind) {
  return std::any_of(scan.intact.begin(), scan.intact.end(),
                     [kind](const ChunkInfo& chunk) { return chunk.kind == kind; });
}

}  // namespace

RecordingCheck check_recording(const std::string& path, const std::function<void()>& between) {
  const RecordingName name = parse_recording_name(path);
  if (name.number) throw UsageError(path + ": all recordings of a file are checked, " + name.path);
  RecordingCheck check;
  check.scan = scan_container(path, between);
  require_recording(path, check.scan);
  if (!check.scan.sound()) return check;
  try {
    check.losses = losses_of(ContainerReader(path));
    if (check.losses.empty()) decode_everything(path, between);
  } catch (const FormatError& error) {
    check.scan.damage.push_back({0, check.scan.file_bytes, std::nullopt, error.what()});
  }
  return check;
}

RecordingCheck repair_recording(const std::string& from, const std::string& to,
                                const std::function<void()>& between) {
  RecordingCheck check = check_recording(from, between);
  for (const ChunkKind kind : {kMetaChunk, kCpuChunk}) {
    if (has_kind(check.scan, kind)) continue;
    throw FormatError(from, 0,
                      "expected an intact " + chunk_kind_name(kind) +
                          " chunk, without which there is no recording, found none");
  }
  salvage_container(from, to);
  return check;
}

}  // namespace citcat
