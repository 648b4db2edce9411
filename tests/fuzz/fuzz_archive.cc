// Whole archives: opening, checking, repairing and appending on any sequence of chunks, each behind
// a header and hashes that are right.
//
// The input is chunks: a byte for the kind, two for the size, the payload. Where the payload of an
// index of checkpoints has "CHKP" and a byte n among eight, it gets the hash of checkpoint n there:
// no mutation finds it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "events/archive/checkpoint_series.h"
#include "events/archive/chunk_table.h"
#include "events/archive/container.h"
#include "events/archive/machine_file.h"
#include "events/archive/recording_check.h"
#include "events/archive/recording_codec.h"
#include "events/archive/recording_file.h"
#include "events/archive/symbol_codec.h"
#include "events/processors/cross_check.h"
#include "formats/io/error.h"
#include "fuzz/file_in_memory.h"
#include "fuzz/fuzz_target.h"

namespace {

struct Chunk {
  citcat::ChunkKind kind;
  std::vector<std::uint8_t> payload;
};

std::vector<Chunk> chunks_of(std::span<const std::uint8_t> input) {
  constexpr std::size_t kHead = 3;
  std::vector<Chunk> chunks;
  while (input.size() >= kHead) {
    const auto payload = input.subspan(kHead);
    const std::size_t size =
        std::min(payload.size(), std::size_t{input[1]} | std::size_t{input[2]} << 8);
    chunks.push_back({citcat::chunk_rows()[input[0] % citcat::chunk_rows().size()].kind,
                      {payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size)}});
    input = payload.subspan(size);
  }
  return chunks;
}

/// Puts hashes of checkpoints where an index of them asks for them.
void name_checkpoints(std::vector<std::uint8_t>& index, const std::vector<std::uint64_t>& hashes) {
  constexpr char kWanted[4] = {'C', 'H', 'K', 'P'};
  for (std::size_t at = 0; at + 8 <= index.size(); ++at) {
    if (std::memcmp(&index[at], kWanted, sizeof kWanted) != 0) continue;
    if (index[at + 4] >= hashes.size()) continue;
    const std::uint64_t hash = hashes[index[at + 4]];
    for (unsigned i = 0; i < 8; ++i) index[at + i] = static_cast<std::uint8_t>(hash >> 8 * i);
  }
}

/// Everything but indexes of checkpoints, then these.
void write_archive(std::vector<Chunk> chunks, const std::string& path) {
  constexpr citcat::ZstdOptions kQuick{1, 0};
  citcat::ContainerWriter writer(path);
  for (const Chunk& chunk : chunks) {
    if (chunk.kind == citcat::kCheckpointIndexChunk) continue;
    writer.add_here(chunk.kind, chunk.payload, kQuick);
  }
  writer.finish();
  std::vector<std::uint64_t> hashes;
  const citcat::ContainerReader written(path);
  for (const citcat::ChunkInfo& chunk : written.chunks()) {
    if (chunk.kind == citcat::kCheckpointChunk) hashes.push_back(chunk.hash.low);
  }
  citcat::ContainerAppender appender(path);
  for (Chunk& chunk : chunks) {
    if (chunk.kind != citcat::kCheckpointIndexChunk) continue;
    name_checkpoints(chunk.payload, hashes);
    appender.add(chunk.kind, std::move(chunk.payload), kQuick);
  }
  appender.finish();
}

void read_recording(const std::string& path) {
  const citcat::RecordingFile file = citcat::RecordingFile::open(path);
  CITCAT_ASSERT(file.number() < file.recordings());
  file.identity();
  file.waived();
  file.told_changes();
  if (file.meta().evidence == citcat::EvidenceMode::full) {
    const auto evidence = file.evidence();
    citcat::BusTransaction transaction;
    while (evidence->next(transaction)) {
    }
  }
  for (const citcat::CheckpointSeries& series : citcat::CheckpointSeries::read(file)) {
    for (std::size_t i = 0; i < series.entries().size(); ++i) {
      series.load_state(file, i);
      series.load(file, i);
    }
  }
}

/// Reads all recordings, and of several processors what they share.
void read_archive(const std::string& path) {
  const auto machine = citcat::MachineFile::find(path);
  const std::size_t recordings =
      machine ? machine->processors() : citcat::RecordingFile::open(path).recordings();
  for (std::size_t i = 0; i < recordings; ++i) read_recording(path + "@" + std::to_string(i));
  if (!machine) return;
  const std::vector<citcat::RecordingFile> files = citcat::open_processors(*machine);
  for (const citcat::RecordingFile& file : files) {
    if (file.meta().evidence != citcat::EvidenceMode::full) return;
  }
  citcat::CrossCheck check = citcat::cross_check_of(*machine, files);
  citcat::SharedBus bus = citcat::shared_bus_of(*machine, files);
  (void)citcat::check_shared_bus(bus, check);
}

/// What is sound can be read. What is not may be repaired, and is no damaged container then.
void check_and_repair(const std::string& path) {
  const bool sound = citcat::check_recording(path).sound();
  try {
    read_archive(path);
  } catch (const citcat::FormatError&) {
    CITCAT_ASSERT(!sound);
  }
  const citcat::fuzz::FileInMemory repaired;
  try {
    citcat::repair_recording(path, repaired.path());
    CITCAT_ASSERT(citcat::scan_container(repaired.path()).sound());
  } catch (const citcat::FormatError&) {
    CITCAT_ASSERT(!sound);
  }
}

}  // namespace

CITCAT_FUZZ_TARGET(archive) {
  const citcat::fuzz::FileInMemory file;
  write_archive(chunks_of({data, size}), file.path());
  check_and_repair(file.path());
  return 0;
}
