#pragma once
// The kinds of chunks that an archive has, a row each (docs/formats/archive.md): how one is read,
// what it is for, and how much memory it may take.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "events/archive/chunk.h"
#include "events/archive/recording_parts.h"
#include "formats/io/byte_reader.h"

namespace citcat {

/// The purpose of a chunk, in the order in which accounts name it.
enum class ChunkPurpose : std::uint8_t {
  state,
  image,
  events,
  digests,
  evidence,
  symbols,
  checkpoints,
  archive,  ///< which recording follows, what was lost
  machine,  ///< several processors together (machine_chunks.h)
};

/// Whether a chunk counts for RecordingFile::identity().
enum class ChunkIdentity : std::uint8_t {
  part,
  hint,   ///< only of the recording with its hints
  apart,  ///< added later, or found out by a replay, or counted field by field
};

/// Takes what a chunk says into the parts of its recording. Throws FormatError.
using ChunkDecoder = void (*)(ByteReader& in, RecordingParts& parts);

struct ChunkRow {
  ChunkKind kind;
  ChunkPurpose purpose;
  ChunkIdentity identity;
  ChunkDecoder decode;  ///< null: read when somebody asks for it, or not of one recording
  // Chunks that begin with the number of their rows:
  std::uint64_t row_bytes = 0;  ///< what a row becomes in memory, at most; 0 without rows
  std::uint64_t columns = 0;    ///< decoded on the way, eight bytes a row each
  bool packed = false;          ///< what they become takes less (events/packed_events.h)
};

/// All of them but the container's own (container.h), in an order that does not change: fuzzers
/// name kinds by it.
std::span<const ChunkRow> chunk_rows();
/// Null where no row is of the kind.
const ChunkRow* find_chunk_row(ChunkKind kind);

/// Calls `add` for each optional chunk that the recording has, in the order of a file.
void add_optional_chunks(const Recording& recording,
                         const std::function<void(ChunkKind, std::vector<std::uint8_t>)>& add);

}  // namespace citcat
