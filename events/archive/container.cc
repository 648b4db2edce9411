#include "events/archive/container.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "events/archive/container_layout.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {

using namespace container_layout;

namespace {

constexpr ZstdOptions kIndexCompression{3, 0};

/// A chunk ready for the file.
struct EncodedChunk {
  std::vector<std::uint8_t> header;
  std::vector<std::uint8_t> payload;
};

/// `stored` is the payload as it will be in the file; gives the chunk its place after what
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
  constexpr int kMaxKept = 3;
  if (options.level <= kMaxKept && options.window_log == 0) {
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
  if (path == "-" || is_once_input(path)) {
    throw UsageError(path + ": expected a file to add to, found what can only be read");
  }
  open_locked();
  const ContainerReader existing(path);
  layout_.chunks = existing.chunks();
  layout_.offset = existing.unfinished_append().value_or(existing.file_bytes());
  layout_.sequence = existing.end_.sequence + 1;
  old_size_ = layout_.offset;
  const bool ready = ::ftruncate(file_.value(), static_cast<off_t>(old_size_)) == 0 &&
                     ::lseek(file_.value(), 0, SEEK_END) >= 0;
  if (!ready) throw IoError(path + ": cannot append: " + std::strerror(errno));
}

/// Nobody else adds to the file from here on; waits for who does. The lock ends with the
/// descriptor.
void ContainerAppender::open_locked() {
  for (;;) {
    file_ = FileDescriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (file_.value() < 0) throw IoError(path_ + ": cannot open: " + std::strerror(errno));
    while (::flock(file_.value(), LOCK_EX) != 0) {
      if (errno != EINTR) throw IoError(path_ + ": cannot lock: " + std::strerror(errno));
    }
    // Who had the lock may have put another file in its place.
    struct stat named {
    }, locked{};
    const bool known = ::stat(path_.c_str(), &named) == 0 && ::fstat(file_.value(), &locked) == 0;
    if (!known) throw IoError(path_ + ": cannot look at: " + std::strerror(errno));
    if (named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return;
  }
}

ContainerAppender::~ContainerAppender() {
  // Back to the file as it was; should this fail, the file still reads as before.
  const bool begun = old_size_ != 0 && !finished_;
  if (begun && ::ftruncate(file_.value(), static_cast<off_t>(old_size_)) != 0) {
  }
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
  if (::fsync(file_.value()) != 0) throw IoError(path_ + ": cannot flush: " + std::strerror(errno));
  write(tail);
  if (::fsync(file_.value()) != 0) throw IoError(path_ + ": cannot flush: " + std::strerror(errno));
  finished_ = true;
}

void ContainerAppender::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file_.value(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) throw IoError(path_ + ": cannot write: " + std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

}  // namespace citcat
