#pragma once
// Reading a file or stream from beginning to end, whatever it is compressed with. Compression is
// recognised by content (gzip, bzip2, xz, zstd, stored KT), never by name.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/compression.h"
#include "formats/io/hash.h"

namespace citcat {

class Decompression;
class StoredBytes;

/// A forward stream of bytes. Memory: a few buffers and the decompressor's window
/// (formats/io/decompression.h).
///
/// A compressed file that ends inside a member, frame or block, fails its checksum or is followed
/// by something else throws FormatError; the offset is then that of the *compressed* file and the
/// message says so. Errors of the operating system throw IoError, and so does a file that somebody
/// changed while it was read to its end.
class InputStream {
 public:
  /// `head` only peeks at the beginning: use read_head() for that.
  enum class Use : std::uint8_t { whole, head };
  /// Opens `path`; "-" is the standard input. Several concatenated members or frames are one
  /// stream. An input that can be read only once (once_input.h) throws IoError the second time.
  explicit InputStream(const std::string& path, Use use = Use::whole);
  /// Reads from memory that the caller keeps alive; `name` is for messages.
  InputStream(std::span<const std::uint8_t> stored, std::string name);
  /// Reads a KT trace from the segment whose frame lies at `file_offset` (formats/kt/kt_index.h).
  InputStream(const std::string& path, std::uint64_t file_offset);
  ~InputStream();
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Fills `out` and returns its size; returns less only at the end of the stream.
  std::size_t read(std::span<std::uint8_t> out);
  /// Fills `out` or throws FormatError naming `field`.
  void read_exact(std::span<std::uint8_t> out, std::string_view field);
  /// The next `n` bytes (at most kMaxPeek) without consuming them; fewer only when the stream ends
  /// before. Valid until the next call of any member.
  std::span<const std::uint8_t> peek(std::size_t n);
  /// Consumes and returns what is buffered, at least one byte; empty at the end. Valid until the
  /// next call of any member. The fastest way to read all.
  std::span<const std::uint8_t> next_block();
  /// Consumes `n` bytes of what peek() returned.
  void consume(std::size_t n);
  /// True when not one byte is left.
  bool at_end() { return peek(1).empty(); }

  /// Bytes consumed so far, after decompression.
  std::uint64_t offset() const { return offset_; }
  /// For messages: the path as given, "(standard input)" for "-".
  const std::string& name() const { return name_; }
  Compression compression() const { return compression_; }
  /// The name is that of what an interrupted writer left (formats/io/atomic_file.h): a zstd stream
  /// is then read as far as it goes.
  bool is_unfinished() const;
  /// Bytes of the file as stored, read so far; all of them once the end was reached.
  std::uint64_t stored_bytes() const;
  /// XXH3-128 of those bytes.
  Hash128 stored_hash() const;

  static constexpr std::size_t kMaxPeek = std::size_t{1} << 20;

 private:
  void start(Compression compression, bool from_beginning);
  bool fill(std::size_t wanted);
  std::size_t produce(std::span<std::uint8_t> out);

  std::string name_;
  std::unique_ptr<StoredBytes> stored_;
  std::unique_ptr<Decompression> plain_;  ///< null for a file that is not compressed
  Compression compression_ = Compression::none;
  bool in_place_ = false;             ///< nothing is copied
  std::vector<std::uint8_t> buffer_;  ///< of all others
  std::span<const std::uint8_t> unread_;
  std::uint64_t offset_ = 0;
};

/// The first `n` bytes (at most InputStream::kMaxPeek) of a stream, decompressed; fewer only if the
/// stream is shorter. Consumes nothing, even of a pipe: the next to open it still gets all bytes.
/// Throws FormatError for damaged input.
std::vector<std::uint8_t> read_head(const std::string& path, std::size_t n);

/// The whole of a stream, decompressed. More than `max_bytes` throws FormatError.
std::vector<std::uint8_t> read_whole_file(const std::string& path, std::uint64_t max_bytes);

}  // namespace citcat
