#include "events/archive/container_layout.h"

#include <algorithm>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"

namespace citcat::container_layout {

namespace {

constexpr std::uint32_t kFlagCompressed = 1;

// An index entry takes at least a byte a field; more entries than that are not in any file.
constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 24;

void write_hash(ByteWriter& out, const Hash128& hash) {
  out.u64(hash.low);
  out.u64(hash.high);
}

Hash128 read_hash(ByteReader& in, std::string_view field) {
  Hash128 hash;
  hash.low = in.u64(field);
  hash.high = in.u64(field);
  return hash;
}

/// What the content hash runs over, of one chunk: kind, plain size, stored size, hash.
void add_to_content(Hasher128& hasher, const ChunkInfo& chunk) {
  ByteWriter out;
  out.u32(chunk.kind);
  out.u64(chunk.plain_bytes);
  out.u64(chunk.stored_bytes);
  write_hash(out, chunk.hash);
  hasher.update(out.view());
}

}  // namespace

std::vector<std::uint8_t> encode_file_header() {
  ByteWriter out;
  out.bytes(kMagic);
  out.u16(kContainerVersion);
  for (int i = 0; i < 6; ++i) out.u8(0);
  out.u64(hash64(out.view()));
  return out.take();
}

std::uint16_t decode_file_header(const RandomAccessFile& file) {
  const std::uint64_t begun = std::min<std::uint64_t>(file.size(), kMagic.size());
  const std::vector<std::uint8_t> magic = file.read(0, begun, "magic");
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin(), kMagic.end())) {
    throw FormatError(file.path(), 0,
                      std::string("expected a citcat recording, found ") +
                          (begun == 0 ? "an empty file"
                                      : "another kind of file (`citcat import` makes a recording "
                                        "from a capture)"));
  }
  const std::vector<std::uint8_t> bytes = file.read(0, kFileHeaderBytes, "archive header");
  ByteReader in(bytes, file.path());
  in.skip(kMagic.size(), "magic");
  const std::uint16_t version = in.u16("version");
  in.skip(6, "reserved");
  if (in.u64("header hash") != hash64(std::span(bytes).first(16))) {
    in.fail_at(0, "archive header: expected its hash to agree, found it damaged");
  }
  if (version == 0 || version > kContainerVersion) {
    in.fail_at(8, "archive version: expected 1 to " + std::to_string(kContainerVersion) +
                      ", found " + std::to_string(version));
  }
  return version;
}

std::vector<std::uint8_t> encode_chunk_header(const ChunkInfo& chunk) {
  ByteWriter out;
  out.bytes(kChunkMagic);
  out.u32(chunk.kind);
  out.u32(chunk.sequence);
  out.u32(chunk.compressed ? kFlagCompressed : 0);
  out.u64(chunk.stored_bytes);
  out.u64(chunk.plain_bytes);
  write_hash(out, chunk.hash);
  out.u64(hash64(out.view()));
  return out.take();
}

std::optional<ChunkInfo> decode_chunk_header(std::span<const std::uint8_t> bytes,
                                             std::uint64_t offset) {
  ByteReader in(bytes, {});
  const auto magic = in.bytes(kChunkMagic.size(), "magic");
  if (!std::equal(magic.begin(), magic.end(), kChunkMagic.begin())) return std::nullopt;
  ChunkInfo chunk;
  chunk.offset = offset;
  chunk.kind = in.u32("kind");
  chunk.sequence = in.u32("sequence");
  const std::uint32_t flags = in.u32("flags");
  chunk.compressed = (flags & kFlagCompressed) != 0;
  chunk.stored_bytes = in.u64("stored bytes");
  chunk.plain_bytes = in.u64("plain bytes");
  chunk.hash = read_hash(in, "payload hash");
  const bool intact = in.u64("header hash") == hash64(bytes.first(kChunkHeaderBytes - 8)) &&
                      (flags & ~kFlagCompressed) == 0 && chunk.stored_bytes <= kMaxChunkBytes &&
                      chunk.plain_bytes <= kMaxChunkBytes &&
                      (chunk.compressed || chunk.stored_bytes == chunk.plain_bytes);
  if (!intact) return std::nullopt;
  return chunk;
}

std::string describe(const ChunkInfo& chunk) {
  return "chunk " + std::to_string(chunk.sequence) + " (" + chunk_kind_name(chunk.kind) + ")";
}

ChunkInfo read_chunk_header(const RandomAccessFile& file, std::uint64_t offset,
                            const std::string& expected) {
  const auto bytes = file.read(offset, kChunkHeaderBytes, expected + ": chunk header");
  const std::optional<ChunkInfo> chunk = decode_chunk_header(bytes, offset);
  if (!chunk) {
    throw FormatError(file.path(), offset,
                      expected + ": expected the header of a chunk, found damaged bytes");
  }
  return *chunk;
}

std::vector<std::uint8_t> read_payload(const RandomAccessFile& file, const ChunkInfo& chunk) {
  const std::uint64_t at = chunk.offset + kChunkHeaderBytes;
  std::vector<std::uint8_t> stored = file.read(at, chunk.stored_bytes, describe(chunk));
  if (hash128(stored) != chunk.hash) {
    throw FormatError(file.path(), chunk.offset,
                      describe(chunk) + ": expected " + std::to_string(chunk.stored_bytes) +
                          " bytes with the hash in its header, found damaged bytes");
  }
  if (!chunk.compressed) return stored;
  return zstd_decompress(stored, chunk.plain_bytes, file.path(), at);
}

Hash128 content_hash_of(const std::vector<ChunkInfo>& chunks) {
  Hasher128 hasher;
  for (const ChunkInfo& chunk : chunks) add_to_content(hasher, chunk);
  return hasher.value();
}

std::vector<std::uint8_t> encode_index(const std::vector<ChunkInfo>& chunks) {
  ByteWriter out;
  out.varint(chunks.size());
  std::uint64_t expected_offset = 0;
  std::uint32_t expected_sequence = 0;
  for (const ChunkInfo& chunk : chunks) {
    out.u32(chunk.kind);
    out.varint(chunk.sequence - expected_sequence);
    out.varint(chunk.offset - expected_offset);
    out.u8(chunk.compressed ? 1 : 0);
    out.varint(chunk.stored_bytes);
    out.varint(chunk.plain_bytes);
    write_hash(out, chunk.hash);
    expected_sequence = chunk.sequence + 1;
    expected_offset = chunk.offset + kChunkHeaderBytes + chunk.stored_bytes;
  }
  return out.take();
}

std::vector<ChunkInfo> decode_index(std::span<const std::uint8_t> bytes, const std::string& name,
                                    std::uint64_t offset) {
  ByteReader in(bytes, name, offset);
  const std::size_t count = in.count("number of chunks", std::min(kMaxChunks, in.remaining() / 8));
  std::vector<ChunkInfo> chunks(count);
  std::uint64_t next_offset = 0;
  std::uint32_t next_sequence = 0;
  for (ChunkInfo& chunk : chunks) {
    chunk.kind = in.u32("chunk kind");
    chunk.sequence =
        next_sequence + static_cast<std::uint32_t>(in.count("chunk sequence", kMaxChunks));
    chunk.offset = next_offset + in.varint("chunk offset");
    chunk.compressed = in.u8("chunk compression") != 0;
    chunk.stored_bytes = in.count("stored bytes", kMaxChunkBytes);
    chunk.plain_bytes = in.count("plain bytes", kMaxChunkBytes);
    chunk.hash = read_hash(in, "chunk hash");
    next_sequence = chunk.sequence + 1;
    next_offset = chunk.offset + kChunkHeaderBytes + chunk.stored_bytes;
  }
  in.expect_end("the index");
  return chunks;
}

EndPayload decode_end(std::span<const std::uint8_t> bytes, const std::string& name,
                      std::uint64_t offset) {
  ByteReader in(bytes, name, offset);
  EndPayload end;
  end.index_offset = in.u64("index offset");
  end.file_bytes = in.u64("file size");
  end.content_hash = read_hash(in, "content hash");
  in.expect_end("the end chunk");
  return end;
}

std::vector<std::uint8_t> encode_end(const EndPayload& end) {
  ByteWriter out;
  out.u64(end.index_offset);
  out.u64(end.file_bytes);
  write_hash(out, end.content_hash);
  return out.take();
}

}  // namespace citcat::container_layout
