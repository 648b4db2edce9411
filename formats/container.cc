#include "formats/container.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/byte_writer.h"
#include "formats/error.h"

namespace citcat {

namespace {

// File header: magic, u16 version, 6 zeros, u64 XXH3-64 of the 16 bytes before. The magic begins
// with a byte that is no ASCII and ends in a line feed, so that transfers as text show at once.
constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'C', 'I', 'T', 'C', 'A', 'T', '\n'};
constexpr std::uint64_t kFileHeaderBytes = 8 + 2 + 6 + 8;

// Chunk header: magic, u32 kind, u32 sequence, u32 flags, u64 stored bytes, u64 plain bytes,
// XXH3-128 of the payload (low half first), u64 XXH3-64 of the 48 bytes before.
constexpr std::array<std::uint8_t, 4> kChunkMagic{0xc7, 'C', 'K', 0x1a};
constexpr std::uint64_t kChunkHeaderBytes = 4 + 4 + 4 + 4 + 8 + 8 + 16 + 8;
constexpr std::uint32_t kFlagCompressed = 1;

// Payload of the end chunk: u64 offset of the index chunk, u64 file size with this chunk, content
// hash. It is stored plain, so that it has one size and is found from the end of the file.
constexpr std::uint64_t kEndPayloadBytes = 8 + 8 + 16;
constexpr std::uint64_t kEndBytes = kChunkHeaderBytes + kEndPayloadBytes;

// An index entry takes at least a byte a field; more entries than that are not in any file.
constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 24;

constexpr ZstdOptions kIndexCompression{3, 0};

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

std::vector<std::uint8_t> encode_file_header() {
  ByteWriter out;
  out.bytes(kMagic);
  out.u16(kContainerVersion);
  for (int i = 0; i < 6; ++i) out.u8(0);
  out.u64(hash64(out.view()));
  return out.take();
}

/// Returns the version.
std::uint16_t decode_file_header(const RandomAccessFile& file) {
  const std::vector<std::uint8_t> bytes = file.read(0, kFileHeaderBytes, "archive header");
  ByteReader in(bytes, file.path());
  const auto magic = in.bytes(kMagic.size(), "magic");
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin())) {
    in.fail_at(0, "expected a citcat archive, found another kind of file");
  }
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

/// The chunk whose header lies at `offset`, or nullopt when none does.
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

/// Reads the header at `offset` or throws. `expected` says what the header should be of.
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

/// Reads and checks the payload of a chunk whose header is known to be right.
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

/// What the content hash runs over, of one chunk: kind, plain size, stored size, hash.
void add_to_content(Hasher128& hasher, const ChunkInfo& chunk) {
  ByteWriter out;
  out.u32(chunk.kind);
  out.u64(chunk.plain_bytes);
  out.u64(chunk.stored_bytes);
  write_hash(out, chunk.hash);
  hasher.update(out.view());
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

struct EndPayload {
  std::uint64_t index_offset = 0;
  std::uint64_t file_bytes = 0;
  Hash128 content_hash;
};

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

/// A chunk ready for the file.
struct EncodedChunk {
  std::vector<std::uint8_t> header;
  std::vector<std::uint8_t> payload;
};

/// `stored` is the payload as it will stand in the file; gives the chunk its place after what
/// `layout` holds. Index and end chunks are not listed in the index.
template <typename Layout>
EncodedChunk place_chunk(Layout& layout, ChunkKind kind, std::vector<std::uint8_t> stored,
                         std::uint64_t plain_bytes, bool compressed) {
  ChunkInfo chunk;
  chunk.kind = kind;
  chunk.sequence = layout.sequence++;
  chunk.offset = layout.offset;
  chunk.compressed = compressed;
  chunk.stored_bytes = stored.size();
  chunk.plain_bytes = plain_bytes;
  chunk.hash = hash128(stored);
  layout.offset += kChunkHeaderBytes + stored.size();
  if (kind != kIndexChunk && kind != kEndChunk) layout.chunks.push_back(chunk);
  return {encode_chunk_header(chunk), std::move(stored)};
}

/// Index and end for what `layout` holds, as one piece of bytes.
template <typename Layout>
std::vector<std::uint8_t> place_index_and_end(Layout& layout) {
  EndPayload end;
  end.index_offset = layout.offset;
  end.content_hash = content_hash_of(layout.chunks);
  const std::vector<std::uint8_t> index = encode_index(layout.chunks);
  const EncodedChunk index_chunk =
      place_chunk(layout, kIndexChunk, zstd_compress(index, kIndexCompression), index.size(), true);
  end.file_bytes = layout.offset + kEndBytes;
  const EncodedChunk end_chunk =
      place_chunk(layout, kEndChunk, encode_end(end), kEndPayloadBytes, false);
  ByteWriter out;
  for (const EncodedChunk* chunk : {&index_chunk, &end_chunk}) {
    out.bytes(chunk->header);
    out.bytes(chunk->payload);
  }
  return out.take();
}

void require_chunk_size(std::size_t plain_bytes) {
  if (plain_bytes <= kMaxChunkBytes) return;
  throw UsageError("a chunk holds at most " + std::to_string(kMaxChunkBytes) + " bytes, not " +
                   std::to_string(plain_bytes));
}

}  // namespace

std::string chunk_kind_name(ChunkKind kind) {
  std::string name;
  for (int i = 0; i < 4; ++i) {
    const auto c = static_cast<char>(kind >> (8 * i) & 0xff);
    name += c >= ' ' && c <= '~' ? c : '?';
  }
  return name;
}

// ---- Writing
// -------------------------------------------------------------------------------------

ContainerWriter::ContainerWriter(const std::string& path) : file_(path) {
  const std::vector<std::uint8_t> header = encode_file_header();
  file_.write(header);
  layout_.offset = header.size();
}

ContainerWriter::~ContainerWriter() = default;

void ContainerWriter::add(ChunkKind kind, std::vector<std::uint8_t> plain,
                          const ZstdOptions& options) {
  require_chunk_size(plain.size());
  add(
      kind, [plain = std::move(plain)]() mutable { return std::move(plain); }, options);
}

void ContainerWriter::add(ChunkKind kind, std::function<std::vector<std::uint8_t>()> make,
                          const ZstdOptions& options) {
  const std::size_t threads = std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
  drain(threads);
  Pending chunk;
  chunk.kind = kind;
  chunk.payload = std::async(std::launch::async, [this, make = std::move(make), options] {
    return pack(make(), options, compressors_);
  });
  pending_.push_back(std::move(chunk));
}

ContainerWriter::Payload ContainerWriter::pack(std::vector<std::uint8_t> plain,
                                               const ZstdOptions& options,
                                               Recycler<ZstdCompressor>& compressors) {
  require_chunk_size(plain.size());
  Payload payload;
  payload.plain_bytes = plain.size();
  // The memory of a compressor grows with its level: those of high ones are not kept.
  constexpr int kMostKept = 3;
  if (options.level <= kMostKept && options.window_log == 0) {
    const std::shared_ptr<ZstdCompressor> compressor = compressors.take();
    payload.stored = compressor->compress(plain, options);
    compressors.give_back(compressor);
  } else {
    payload.stored = zstd_compress(plain, options);
  }
  // A frame that is not smaller than its content is not worth keeping.
  payload.compressed = payload.stored.size() < plain.size();
  if (!payload.compressed) payload.stored = std::move(plain);
  return payload;
}

void ContainerWriter::drain(std::size_t leave) {
  while (pending_.size() > leave) {
    Pending next = std::move(pending_.front());
    pending_.pop_front();
    write(next.kind, next.payload.get());
  }
}

void ContainerWriter::write(ChunkKind kind, Payload payload) {
  const EncodedChunk chunk = place_chunk(layout_, kind, std::move(payload.stored),
                                         payload.plain_bytes, payload.compressed);
  file_.write(chunk.header);
  file_.write(chunk.payload);
}

void ContainerWriter::add_here(ChunkKind kind, std::vector<std::uint8_t> plain,
                               const ZstdOptions& options) {
  drain(0);
  write(kind, pack(std::move(plain), options, compressors_));
}

void ContainerWriter::copy(const RandomAccessFile& from, std::span<const ChunkInfo> chunks) {
  drain(0);
  for (const ChunkInfo& chunk : chunks) {
    const EncodedChunk copy = place_chunk(
        layout_, chunk.kind,
        from.read(chunk.offset + kChunkHeaderBytes, chunk.stored_bytes, describe(chunk)),
        chunk.plain_bytes, chunk.compressed);
    file_.write(copy.header);
    file_.write(copy.payload);
  }
}

void ContainerWriter::finish() {
  drain(0);
  file_.write(place_index_and_end(layout_));
  file_.commit();
}

// ---- Reading
// -------------------------------------------------------------------------------------

namespace {

/// The end chunk that closes the file at `file_bytes`, if it is whole and says so.
std::optional<ChunkInfo> find_end_chunk(const RandomAccessFile& file, std::uint64_t file_bytes) {
  if (file_bytes < kFileHeaderBytes + kEndBytes) return std::nullopt;
  const std::uint64_t offset = file_bytes - kEndBytes;
  const auto bytes = file.read(offset, kChunkHeaderBytes, "end chunk");
  const std::optional<ChunkInfo> chunk = decode_chunk_header(bytes, offset);
  if (!chunk || chunk->kind != kEndChunk || chunk->stored_bytes != kEndPayloadBytes) {
    return std::nullopt;
  }
  return chunk;
}

/// Walks the chunks from the beginning, by their headers alone, as far as they follow each other.
/// Returns the last end chunk on the way: where the file was complete before an append.
std::optional<ChunkInfo> find_earlier_end(const RandomAccessFile& file) {
  std::optional<ChunkInfo> last;
  std::uint64_t offset = kFileHeaderBytes;
  while (file.size() - offset >= kChunkHeaderBytes) {
    const auto bytes = file.read(offset, kChunkHeaderBytes, "chunk header");
    const std::optional<ChunkInfo> chunk = decode_chunk_header(bytes, offset);
    if (!chunk || chunk->stored_bytes > file.size() - offset - kChunkHeaderBytes) break;
    offset += kChunkHeaderBytes + chunk->stored_bytes;
    if (chunk->kind == kEndChunk && chunk->stored_bytes == kEndPayloadBytes) last = chunk;
  }
  return last;
}

}  // namespace

bool is_container(std::span<const std::uint8_t> prefix) {
  return prefix.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), prefix.begin());
}

ContainerReader::ContainerReader(const std::string& path) : file_(path) {
  version_ = decode_file_header(file_);
  std::optional<ChunkInfo> end = find_end_chunk(file_, file_.size());
  if (!end) {
    end = find_earlier_end(file_);
    if (!end) {
      throw FormatError(path, file_.size(),
                        "expected the end of a complete archive, found it cut or damaged there");
    }
    unfinished_append_ = end->offset + kEndBytes;
  }
  load_index(*end);
}

void ContainerReader::load_index(const ChunkInfo& end_chunk) {
  end_ = end_chunk;
  const EndPayload end = decode_end(read_payload(file_, end_chunk), file_.path(), end_chunk.offset);
  if (end.file_bytes != end_chunk.offset + kEndBytes) {
    throw FormatError(file_.path(), end_chunk.offset,
                      "expected an archive of " + std::to_string(end.file_bytes) +
                          " bytes, found its end after " +
                          std::to_string(end_chunk.offset + kEndBytes));
  }
  const ChunkInfo index = read_chunk_header(file_, end.index_offset, "index");
  if (index.kind != kIndexChunk) {
    throw FormatError(file_.path(), index.offset, "expected the index, found " + describe(index));
  }
  chunks_ = decode_index(read_payload(file_, index), file_.path(), index.offset);
  content_hash_ = content_hash_of(chunks_);
  if (content_hash_ != end.content_hash) {
    throw FormatError(file_.path(), index.offset,
                      "expected an index with content hash " + end.content_hash.hex() + ", found " +
                          content_hash_.hex());
  }
}

std::vector<std::uint8_t> ContainerReader::read(const ChunkInfo& chunk) const {
  const ChunkInfo found = read_chunk_header(file_, chunk.offset, describe(chunk));
  if (!(found == chunk)) {
    throw FormatError(file_.path(), chunk.offset,
                      "expected " + describe(chunk) + " as the index has it, found " +
                          describe(found) + " of other size or content");
  }
  return read_payload(file_, chunk);
}

// ---- Appending
// -----------------------------------------------------------------------------------

ContainerAppender::ContainerAppender(const std::string& path) : path_(path) {
  const ContainerReader existing(path);
  layout_.chunks = existing.chunks();
  layout_.offset = existing.unfinished_append().value_or(existing.file_bytes());
  layout_.sequence = existing.end_.sequence + 1;
  old_size_ = layout_.offset;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw IoError(path + ": cannot open: " + std::strerror(errno));
  const bool ready = ::ftruncate(descriptor_, static_cast<off_t>(old_size_)) == 0 &&
                     ::lseek(descriptor_, 0, SEEK_END) >= 0;
  if (!ready) {
    const int reason = errno;
    ::close(descriptor_);
    throw IoError(path + ": cannot append: " + std::strerror(reason));
  }
}

ContainerAppender::~ContainerAppender() {
  if (descriptor_ < 0) return;
  // Back to the file as it was; should this fail, the file still reads as before.
  if (!finished_ && ::ftruncate(descriptor_, static_cast<off_t>(old_size_)) != 0) {
  }
  ::close(descriptor_);
}

ChunkInfo ContainerAppender::add(ChunkKind kind, std::vector<std::uint8_t> plain,
                                 const ZstdOptions& options) {
  ContainerWriter::Payload payload = ContainerWriter::pack(std::move(plain), options, compressors_);
  const EncodedChunk chunk = place_chunk(layout_, kind, std::move(payload.stored),
                                         payload.plain_bytes, payload.compressed);
  write(chunk.header);
  write(chunk.payload);
  return layout_.chunks.back();
}

void ContainerAppender::finish() {
  const std::vector<std::uint8_t> tail = place_index_and_end(layout_);
  // The new end must not reach the device before the chunks it speaks for.
  if (::fsync(descriptor_) != 0) throw IoError(path_ + ": cannot flush: " + std::strerror(errno));
  write(tail);
  if (::fsync(descriptor_) != 0) throw IoError(path_ + ": cannot flush: " + std::strerror(errno));
  finished_ = true;
}

void ContainerAppender::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw IoError(path_ + ": cannot write: " + std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

// ---- Checking and salvaging
// ----------------------------------------------------------------------

namespace {

/// Reads every byte of a container and sorts it into intact chunks and damage.
class Scanner {
 public:
  explicit Scanner(const std::string& path) : file_(path) { scan_.file_bytes = file_.size(); }

  ContainerScan run() {
    check_header();
    std::uint64_t offset = std::min(kFileHeaderBytes, file_.size());
    while (offset < file_.size()) offset = step(offset);
    check_end();
    scan_.complete = index_ && *index_ == scan_.intact;
    return std::move(scan_);
  }

 private:
  void check_header() {
    try {
      scan_.version = decode_file_header(file_);
    } catch (const FormatError& error) {
      report(0, std::min(kFileHeaderBytes, file_.size()), std::nullopt, error.what());
    }
  }

  /// Takes one chunk, or skips damage to the next readable header. Returns where to go on.
  std::uint64_t step(std::uint64_t offset) {
    const std::optional<ChunkInfo> chunk = header_at(offset);
    if (!chunk) {
      const std::uint64_t next = next_header(offset + 1);
      report(offset, next - offset, std::nullopt,
             "expected chunk " + std::to_string(next_sequence_) + ", found damaged bytes" +
                 (next == file_.size() ? " up to the end" : ""));
      return next;
    }
    if (chunk->sequence != next_sequence_) report_gap(*chunk);
    next_sequence_ = chunk->sequence + 1;
    return take(*chunk);
  }

  /// After bytes without a header, the ordinal of what follows tells how many chunks they were.
  void report_gap(const ChunkInfo& found) {
    const bool after_damage =
        !scan_.damage.empty() && !scan_.damage.back().chunk &&
        scan_.damage.back().offset + scan_.damage.back().bytes == found.offset;
    if (after_damage) {
      scan_.damage.back().message += ", then " + describe(found);
    } else {
      report(found.offset, 0, std::nullopt,
             "expected chunk " + std::to_string(next_sequence_) + ", found " + describe(found));
    }
  }

  std::uint64_t take(const ChunkInfo& chunk) {
    const std::uint64_t end = chunk.offset + kChunkHeaderBytes + chunk.stored_bytes;
    try {
      const std::vector<std::uint8_t> payload = read_payload(file_, chunk);
      if (chunk.kind == kEndChunk) {
        take_end(chunk, payload);
      } else if (chunk.kind == kIndexChunk) {
        index_ = decode_index(payload, file_.path(), chunk.offset);
        index_offset_ = chunk.offset;
      } else {
        scan_.intact.push_back(chunk);
      }
    } catch (const FormatError& error) {
      // A length that is wrong although the header's hash is right does not happen by accident; a
      // payload that is cut or changed does. The next header is searched for within it.
      const std::uint64_t next = end <= file_.size() && header_or_end(end)
                                     ? end
                                     : next_header(chunk.offset + kChunkHeaderBytes);
      report(chunk.offset, next - chunk.offset, chunk, error.what());
      return next;
    }
    return end;
  }

  void take_end(const ChunkInfo& chunk, std::span<const std::uint8_t> payload) {
    const EndPayload end = decode_end(payload, file_.path(), chunk.offset);
    const bool consistent =
        end.file_bytes == chunk.offset + kEndBytes && end.index_offset == index_offset_ && index_ &&
        *index_ == scan_.intact && end.content_hash == content_hash_of(scan_.intact);
    if (!consistent && scan_.damage.empty()) {
      report(chunk.offset, kEndBytes, chunk,
             "expected the end to agree with the index and the chunks before it, found another");
    }
    end_of_last_ = chunk.offset + kEndBytes;
  }

  void check_end() {
    if (end_of_last_ == file_.size()) return;
    if (end_of_last_ == 0) {
      report(file_.size(), 0, std::nullopt, "expected the end chunk, found the file cut");
    } else {
      report(end_of_last_, file_.size() - end_of_last_, std::nullopt,
             "expected the end of the file, found an unfinished append");
    }
  }

  bool header_or_end(std::uint64_t offset) const {
    return offset == file_.size() || header_at(offset).has_value();
  }

  std::optional<ChunkInfo> header_at(std::uint64_t offset) const {
    if (file_.size() - offset < kChunkHeaderBytes) return std::nullopt;
    return decode_chunk_header(file_.read(offset, kChunkHeaderBytes, "chunk header"), offset);
  }

  /// The first offset >= `from` where a chunk header lies; the size of the file when none does.
  std::uint64_t next_header(std::uint64_t from) const {
    constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;
    for (std::uint64_t at = from; at + kChunkHeaderBytes <= file_.size(); at += kPieceBytes) {
      const std::uint64_t size = std::min(kPieceBytes + kChunkHeaderBytes - 1, file_.size() - at);
      const std::vector<std::uint8_t> piece = file_.read(at, size, "damaged bytes");
      auto found = piece.begin();
      for (;;) {
        found = std::search(found, piece.end(), kChunkMagic.begin(), kChunkMagic.end());
        const auto index = static_cast<std::size_t>(found - piece.begin());
        if (piece.size() - index < kChunkHeaderBytes) break;
        const auto header = std::span(piece).subspan(index, kChunkHeaderBytes);
        if (decode_chunk_header(header, at + index)) return at + index;
        ++found;
      }
    }
    return file_.size();
  }

  void report(std::uint64_t offset, std::uint64_t bytes, std::optional<ChunkInfo> chunk,
              std::string message) {
    // Messages of FormatError begin with file and offset, which stand beside the message here.
    if (message.starts_with(file_.path() + ":")) {
      message.erase(0, message.find(": ", file_.path().size()) + 2);
    }
    scan_.damage.push_back({offset, bytes, chunk, std::move(message)});
  }

  RandomAccessFile file_;
  ContainerScan scan_;
  std::uint32_t next_sequence_ = 0;
  std::optional<std::vector<ChunkInfo>> index_;  ///< the last intact one
  std::uint64_t index_offset_ = 0;
  std::uint64_t end_of_last_ = 0;
};

}  // namespace

ContainerScan scan_container(const std::string& path) { return Scanner(path).run(); }

LostChunk decode_lost_chunk(ByteReader& in) {
  constexpr std::uint64_t kMaxMessage = 4096;
  LostChunk lost;
  lost.kind = in.u32("kind of the lost chunk");
  lost.message = in.string("what was lost", kMaxMessage);
  in.expect_end("the LOST chunk");
  return lost;
}

namespace {

/// Adds what is lost at `damage`, if it may be content.
void add_lost_chunk(ContainerWriter& writer, const ContainerDamage& damage) {
  const ChunkKind kind = damage.chunk ? damage.chunk->kind : 0;
  if (kind == kIndexChunk || kind == kEndChunk) return;
  ByteWriter out;
  out.u32(kind);
  out.string("offset " + std::to_string(damage.offset) + ": " + damage.message);
  writer.add(kLostChunk, out.take(), ZstdOptions{});
}

}  // namespace

ContainerScan salvage_container(const std::string& from, const std::string& to) {
  ContainerScan scan = scan_container(from);
  if (scan.intact.empty()) {
    throw FormatError(from, 0, "expected at least one intact chunk, found none");
  }
  const RandomAccessFile source(from);
  ContainerWriter writer(to);
  std::size_t next_damage = 0;
  const auto add_lost_before = [&](std::uint64_t offset) {
    for (; next_damage < scan.damage.size(); ++next_damage) {
      const ContainerDamage& damage = scan.damage[next_damage];
      if (damage.offset > offset) return;
      // Damage at offset 0 is that of the file header, which holds no content.
      if (!scan.complete && damage.offset != 0) add_lost_chunk(writer, damage);
    }
  };
  for (const ChunkInfo& chunk : scan.intact) {
    add_lost_before(chunk.offset);
    writer.copy(source, std::span(&chunk, 1));
  }
  add_lost_before(source.size());
  writer.finish();
  return scan;
}

}  // namespace citcat
