#include "events/recording_check.h"

#include <algorithm>

#include "events/checkpoint_series.h"
#include "events/recording_file.h"
#include "formats/error.h"

namespace citcat {

namespace {

/// The number of transactions in the evidence, each decoded.
std::uint64_t count_evidence(const RecordingFile& file) {
  const auto evidence = file.evidence();
  std::uint64_t count = 0;
  for (BusTransaction t; evidence->next(t);) ++count;
  return count;
}

/// A hash that is right proves that the bytes are what was written, not that what was written makes
/// sense; so everything is decoded too. Returns what does not, or "".
std::string decode_everything(const std::string& path) {
  try {
    const std::size_t recordings = RecordingFile::open(path).recordings();
    for (std::size_t i = 0; i < recordings; ++i) {
      const RecordingFile file = RecordingFile::open(path + "@" + std::to_string(i));
      if (file.meta().evidence == EvidenceMode::full) count_evidence(file);
      for (const CheckpointSeries& series : CheckpointSeries::read(file)) series.check(file);
    }
    return "";
  } catch (const FormatError& error) {
    return error.what();
  }
}

bool has_kind(const ContainerScan& scan, ChunkKind kind) {
  return std::any_of(scan.intact.begin(), scan.intact.end(),
                     [kind](const ChunkInfo& chunk) { return chunk.kind == kind; });
}

}  // namespace

RecordingCheck check_recording(const std::string& path) {
  RecordingCheck check;
  check.scan = scan_container(path);
  if (!check.scan.sound()) return check;
  if (has_kind(check.scan, kLostChunk)) {
    const ContainerReader reader(path);
    for (const ChunkInfo& chunk : reader.chunks()) {
      if (chunk.kind != kLostChunk) continue;
      const std::vector<std::uint8_t> payload = reader.read(chunk);
      ByteReader in(payload, path, chunk.offset);
      check.losses.push_back("lost before a repair: " + decode_lost_chunk(in).message);
    }
    return check;
  }
  const std::string problem = decode_everything(path);
  if (!problem.empty()) {
    check.scan.damage.push_back({0, check.scan.file_bytes, std::nullopt, problem});
  }
  return check;
}

RecordingCheck repair_recording(const std::string& from, const std::string& to) {
  RecordingCheck check = check_recording(from);
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
