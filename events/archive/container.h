#pragma once
// The chunk container of docs/formats/archive.md: a sequence of hashed chunks, each found without
// the others, an index of them and one hash over all. It does not know what chunks mean.

#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "events/archive/chunk.h"
#include "formats/io/atomic_file.h"
#include "formats/io/byte_reader.h"
#include "formats/io/file_descriptor.h"
#include "formats/io/hash.h"
#include "formats/io/random_access_file.h"
#include "formats/io/zstd_stream.h"
#include "formats/memory/recycler.h"

namespace citcat {

/// The four characters, anything unprintable as '?'.
std::string chunk_kind_name(ChunkKind kind);

/// Version of the container, raised with every change that an older reader would misunderstand.
/// 1: first version.
inline constexpr std::uint16_t kContainerVersion = 1;
/// Largest chunk before and after compression. Writers split what is larger.
inline constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{1} << 27;

/// Chunks of the container itself.
inline constexpr ChunkKind kIndexChunk = chunk_kind("INDX");
inline constexpr ChunkKind kEndChunk = chunk_kind("END ");
/// A content chunk that salvaging puts where something was lost: see LostChunk.
inline constexpr ChunkKind kLostChunk = chunk_kind("LOST");

/// Appends chunks to a file being written. Compression runs on threads beside the caller; chunks
/// are in the file in the order in which they were added.
class ContainerWriter {
 public:
  /// Writes a new file, visible under `path` after finish().
  explicit ContainerWriter(const std::string& path);
  ~ContainerWriter();
  ContainerWriter(const ContainerWriter&) = delete;
  ContainerWriter& operator=(const ContainerWriter&) = delete;

  /// Throws UsageError beyond kMaxChunkBytes.
  void add(ChunkKind kind, std::vector<std::uint8_t> plain, const ZstdOptions& options);
  /// The same, but `make` produces the payload on a worker thread. What it throws is rethrown by a
  /// later call or by finish().
  void add(ChunkKind kind, std::function<std::vector<std::uint8_t>()> make,
           const ZstdOptions& options);
  /// The same on the calling thread: for chunks that take longer to hand over than to compress.
  void add_here(ChunkKind kind, std::vector<std::uint8_t> plain, const ZstdOptions& options);
  /// Copies chunks from another container without recompressing them.
  void copy(const RandomAccessFile& from, std::span<const ChunkInfo> chunks);
  /// Writes index and end and gives the file its name.
  void finish();
  /// Bytes in the file so far; less than were added while chunks are being compressed.
  std::uint64_t size() const { return layout_.offset; }

 private:
  friend class ContainerAppender;
  /// A payload as it will be stored.
  struct Payload {
    std::vector<std::uint8_t> stored;
    std::uint64_t plain_bytes = 0;
    bool compressed = false;
  };
  struct Pending {
    ChunkKind kind = 0;
    std::future<Payload> payload;
  };
  static Payload pack(std::vector<std::uint8_t> plain, const ZstdOptions& options,
                      Recycler<ZstdCompressor>& compressors);
  /// Where the next chunk goes, and what the index will say.
  struct Layout {
    std::uint64_t offset = 0;
    std::uint32_t sequence = 0;
    std::vector<ChunkInfo> chunks;
  };
  void drain(std::size_t leave);
  void write(ChunkKind kind, Payload payload);

  AtomicFile file_;
  Layout layout_;
  Recycler<ZstdCompressor> compressors_;
  std::deque<Pending> pending_;  ///< after compressors_, which their threads use
};

/// Whether a file that begins with `prefix` is a container, possibly a damaged one.
bool is_container(std::span<const std::uint8_t> prefix);

/// Reads a container by its index. Chunks are checked when they are read.
class ContainerReader {
 public:
  /// Throws FormatError when `path` is no container, of a later version, cut, or damaged in header,
  /// index or end. An append that was interrupted is not an error: the chunks before it are there
  /// and unfinished_append() says where the file goes on.
  explicit ContainerReader(const std::string& path);

  /// Content chunks in file order: without index and end chunks.
  const std::vector<ChunkInfo>& chunks() const { return chunks_; }
  /// The plain payload. FormatError with the chunk's place when its hash or header disagrees.
  std::vector<std::uint8_t> read(const ChunkInfo& chunk) const;

  /// XXH3-128 over kind, sizes and hash of all content chunks in order: the identity of the file.
  const Hash128& content_hash() const { return content_hash_; }
  std::uint16_t version() const { return version_; }
  const std::string& path() const { return file_.path(); }
  std::uint64_t file_bytes() const { return file_.size(); }
  /// Offset of bytes after the last complete end chunk, when there are any.
  std::optional<std::uint64_t> unfinished_append() const { return unfinished_append_; }

 private:
  friend class ContainerAppender;
  void load_index(const ChunkInfo& end);

  RandomAccessFile file_;
  std::uint16_t version_ = 0;
  ChunkInfo end_;
  std::vector<ChunkInfo> chunks_;
  Hash128 content_hash_;
  std::optional<std::uint64_t> unfinished_append_;
};

/// Adds chunks to a finished container. Nothing that is in the file is written again: new chunks, a
/// new index and a new end follow the old ones. Killed before finish() returns, the file reads as
/// before, with unfinished_append(); the next append removes the unfinished bytes. Two that add to
/// one file do so one after the other: the second waits until the first is done or gone, and reads
/// then what the file holds.
class ContainerAppender {
 public:
  explicit ContainerAppender(const std::string& path);
  ~ContainerAppender();
  ContainerAppender(const ContainerAppender&) = delete;
  ContainerAppender& operator=(const ContainerAppender&) = delete;

  /// Returns what the index will say of the chunk.
  ChunkInfo add(ChunkKind kind, std::vector<std::uint8_t> plain, const ZstdOptions& options);
  void finish();

 private:
  void open_locked();
  void write(std::span<const std::uint8_t> bytes);

  std::string path_;
  FileDescriptor file_;  ///< locked
  std::uint64_t old_size_ = 0;
  bool finished_ = false;
  ContainerWriter::Layout layout_;
  Recycler<ZstdCompressor> compressors_;
};

/// One thing wrong with a container.
struct ContainerDamage {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;         ///< affected, when known
  std::optional<ChunkInfo> chunk;  ///< the chunk concerned, when its header is readable
  std::string message;             ///< what was expected and what was found
};

/// The contents of a container, found by reading every byte of it.
struct ContainerScan {
  std::uint64_t file_bytes = 0;
  std::uint16_t version = 0;
  std::vector<ChunkInfo> intact;        ///< content chunks whose header, hash and size are right
  std::vector<ContainerDamage> damage;  ///< in the order of offsets
  /// The index is intact and lists nothing but the intact chunks: no content was lost.
  bool complete = false;
  bool sound() const { return damage.empty(); }
};

/// Finds every cut and every flipped byte. Throws IoError only; what is wrong with the file is in
/// the result.
/// `between` is called between chunks: what it throws ends the scan.
ContainerScan scan_container(const std::string& path, const std::function<void()>& between = {});

/// The contents of a LOST chunk: between the chunks around it, something was lost.
struct LostChunk {
  ChunkKind kind = 0;   ///< of the lost chunk; 0 when that is not known
  std::string message;  ///< what was found in its place
};
LostChunk decode_lost_chunk(ByteReader& in);

/// Writes the intact chunks of `from`, in order, with new index and end, as `to` (which may be the
/// same name). Where content was or may have been lost, a LOST chunk says so. Returns what was
/// found. Throws FormatError when not one chunk is intact.
ContainerScan salvage_container(const std::string& from, const std::string& to);

}  // namespace citcat
