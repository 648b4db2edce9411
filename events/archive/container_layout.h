#pragma once
// The byte layout of an archive: file header, chunks, index, end. Private to the container.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "events/archive/container.h"

namespace citcat::container_layout {

// File header: magic, u16 version, 6 zeros, u64 XXH3-64 of the 16 bytes before. The magic begins
// with a byte that is not ASCII and ends in a line feed, so that a transfer as text is noticed.
inline constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'C', 'I', 'T', 'C', 'A', 'T', '\n'};
inline constexpr std::uint64_t kFileHeaderBytes = 8 + 2 + 6 + 8;

// Chunk header: magic, u32 kind, u32 sequence, u32 flags, u64 stored bytes, u64 plain bytes,
// XXH3-128 of the payload (low half first), u64 XXH3-64 of the 48 bytes before.
inline constexpr std::array<std::uint8_t, 4> kChunkMagic{0xc7, 'C', 'K', 0x1a};
inline constexpr std::uint64_t kChunkHeaderBytes = 4 + 4 + 4 + 4 + 8 + 8 + 16 + 8;

// Payload of the end chunk: u64 offset of the index chunk, u64 file size with this chunk, content
// hash. It is stored plain, so that it has one size and is found from the end of the file.
inline constexpr std::uint64_t kEndPayloadBytes = 8 + 8 + 16;
inline constexpr std::uint64_t kEndBytes = kChunkHeaderBytes + kEndPayloadBytes;

std::vector<std::uint8_t> encode_file_header();
/// Returns the version. Throws FormatError.
std::uint16_t decode_file_header(const RandomAccessFile& file);

std::vector<std::uint8_t> encode_chunk_header(const ChunkInfo& chunk);
/// The chunk whose header lies at `offset`, or nullopt when none does.
std::optional<ChunkInfo> decode_chunk_header(std::span<const std::uint8_t> bytes,
                                             std::uint64_t offset);
/// For messages.
std::string describe(const ChunkInfo& chunk);
/// Reads the header at `offset` or throws. `expected` says what the header should be of.
ChunkInfo read_chunk_header(const RandomAccessFile& file, std::uint64_t offset,
                            const std::string& expected);
/// Reads and checks the payload of a chunk whose header is known to be right. Throws FormatError.
std::vector<std::uint8_t> read_payload(const RandomAccessFile& file, const ChunkInfo& chunk);

Hash128 content_hash_of(const std::vector<ChunkInfo>& chunks);
std::vector<std::uint8_t> encode_index(const std::vector<ChunkInfo>& chunks);
/// `name` and `offset` are for messages: the file, and where `bytes` are in it.
std::vector<ChunkInfo> decode_index(std::span<const std::uint8_t> bytes, const std::string& name,
                                    std::uint64_t offset);

struct EndPayload {
  std::uint64_t index_offset = 0;
  std::uint64_t file_bytes = 0;
  Hash128 content_hash;
};
std::vector<std::uint8_t> encode_end(const EndPayload& end);
/// As decode_index().
EndPayload decode_end(std::span<const std::uint8_t> bytes, const std::string& name,
                      std::uint64_t offset);

}  // namespace citcat::container_layout
