#pragma once
// Bus records as they are stored, back to their 40 bytes each (docs/formats/capture.md, "Stored
// records").

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citcat {

/// What every file of stored records begins with: a skippable frame of zstd (RFC 8878, 3.1.2). The
/// chunks are in the frames behind it.
inline constexpr std::array<std::uint8_t, 16> kStoredRecordsMagic{
    0x50, 0x2a, 0x4d, 0x18, 0x08, 0, 0, 0, 'C', 'I', 'T', 'C', 'A', 'T', 'B', 'R'};
/// Whether a file that begins with `head` is one.
bool holds_stored_records(std::span<const std::uint8_t> head);

inline constexpr std::size_t kRecordChunkHeaderBytes = 32;

/// The head of a chunk of stored records.
struct RecordChunkHeader {
  std::uint32_t bytes = 0;    ///< that follow; 0: the stream ends, `instructions` says the rest
  std::uint32_t records = 0;  ///< in them
  std::uint64_t instructions = 0;  ///< position that the first record is counted from
  std::uint32_t iterations = 0;
  std::uint32_t clock = 0;
  std::uint64_t last = 0;  ///< instructions before the last record that counts any

  static RecordChunkHeader of(std::span<const std::uint8_t, kRecordChunkHeaderBytes> bytes);
  std::array<std::uint8_t, kRecordChunkHeaderBytes> stored() const;
};

/// What ends a stream of so many records.
RecordChunkHeader end_of_chunks(std::uint64_t records);

/// Unpacks chunks in their order.
class RecordUnpacker {
 public:
  static constexpr std::size_t kRecordBytes = 40;
  /// No chunk has more bytes.
  static constexpr std::uint32_t kMostBytes = std::uint32_t{1} << 20;

  RecordUnpacker();
  ~RecordUnpacker();
  RecordUnpacker(const RecordUnpacker&) = delete;
  RecordUnpacker& operator=(const RecordUnpacker&) = delete;

  struct Taken {
    std::size_t bytes = 0, records = 0;
    std::uint64_t last = 0;    ///< as in RecordChunkHeader
    std::string_view problem;  ///< what ends it before the end; empty: it is cut at most
  };
  /// Appends the records of `packed`, what follows `header`, to `out`, as far as they are whole.
  Taken unpack(const RecordChunkHeader& header, std::span<const std::uint8_t> packed,
               std::vector<std::uint8_t>& out);

 private:
  class Chunk;
  /// What records have shown, by address modulo its size.
  static constexpr std::uint32_t kImageBytes = std::uint32_t{1} << 24;
  static constexpr std::size_t kMostData = 16;
  std::uint8_t* image_;
};

/// A chunk that has this record alone.
using RecordChunk =
    std::array<std::uint8_t, kRecordChunkHeaderBytes + 3 + RecordUnpacker::kRecordBytes>;
RecordChunk chunk_of_record(std::span<const std::uint8_t, RecordUnpacker::kRecordBytes> record);

/// The records of a stream of chunks, one after the other.
class RecordChunkStream {
 public:
  /// Fills a part of what it is given; 0 at the end.
  using Pull = std::function<std::size_t(std::span<std::uint8_t>)>;
  /// Throws FormatError with what was expected and found.
  using Fail = std::function<void(const std::string&)>;

  explicit RecordChunkStream(Fail fail) : fail_(std::move(fail)) {}

  /// From now on a stream that is cut ends after its last whole record, and is no error.
  void allow_cut() { may_be_cut_ = true; }
  /// The next bytes of records; 0 at the end.
  std::size_t read(const Pull& pull, std::span<std::uint8_t> out);

 private:
  bool next_chunk(const Pull& pull);
  void end(const Pull& pull, std::uint64_t records);
  std::size_t read_most(const Pull& pull, std::span<std::uint8_t> out);

  Fail fail_;
  RecordUnpacker unpacker_;
  std::vector<std::uint8_t> packed_, records_;
  std::size_t at_ = 0;
  std::uint64_t total_ = 0;
  bool ended_ = false, may_be_cut_ = false;
};

}  // namespace citcat
