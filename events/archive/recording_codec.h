#pragma once
// The parts of a recording as payloads of archive chunks (docs/formats/archive.md, section 3).
// Every decoder throws FormatError when the payload is not what it should be; what it allocates is
// bounded by the payload.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "events/archive/archive_meta.h"
#include "events/archive/container.h"
#include "events/machine/stand_ins.h"
#include "events/recording.h"
#include "formats/io/byte_reader.h"

namespace citcat {

inline constexpr ChunkKind kMetaChunk = chunk_kind("META");
inline constexpr ChunkKind kCpuChunk = chunk_kind("CPUS");
inline constexpr ChunkKind kImageChunk = chunk_kind("IMGP");
inline constexpr ChunkKind kInterruptChunk = chunk_kind("INTR");
inline constexpr ChunkKind kExternalWriteChunk = chunk_kind("EXTW");
inline constexpr ChunkKind kIoReadChunk = chunk_kind("IORD");
inline constexpr ChunkKind kInternalReadChunk = chunk_kind("INTN");
inline constexpr ChunkKind kDroppedChunk = chunk_kind("DROP");
inline constexpr ChunkKind kEvidenceChunk = chunk_kind("EVD2");
inline constexpr ChunkKind kDigestChunk = chunk_kind("DIGS");
inline constexpr ChunkKind kStandInChunk = chunk_kind("HIGH");
inline constexpr ChunkKind kCheckpointChunk = chunk_kind("CHKP");
inline constexpr ChunkKind kCheckpointIndexChunk = chunk_kind("CHKI");
inline constexpr ChunkKind kPlacementChunk = chunk_kind("PLAC");
inline constexpr ChunkKind kHintChunk = chunk_kind("HINT");
/// The chunks that follow belong to another recording of the archive: its number, a varint.
inline constexpr ChunkKind kSelectChunk = chunk_kind("SLCT");

/// Rows of an event chunk; writers begin another chunk when it is full.
inline constexpr std::size_t kEventChunkRows = std::size_t{1} << 18;
/// Page frames of an image chunk.
inline constexpr std::size_t kImageChunkPages = 4096;

/// META holds every field of the recording that has no chunk of its own.
std::vector<std::uint8_t> encode_meta(const Recording& recording, const ArchiveMeta& meta);
void decode_meta(ByteReader& in, Recording& recording, ArchiveMeta& meta);

std::vector<std::uint8_t> encode_cpu(const CpuState& state);
CpuState decode_cpu(ByteReader& in);

/// Page frames `begin` to `end` (ordinals in the image's order). Decoding adds to the image.
std::vector<std::uint8_t> encode_image(const MemoryImage& image, std::size_t begin,
                                       std::size_t end);
void decode_image(ByteReader& in, MemoryImage& image);

/// Written by earlier versions. FormatError where one is not what StandIns::add() takes.
StandIns decode_stand_ins(ByteReader& in);

std::vector<std::uint8_t> encode_digests(std::span<const ReplayDigest> digests);
void decode_digests(ByteReader& in, std::vector<ReplayDigest>& digests);

}  // namespace citcat
