#include "formats/kt/kt_index.h"

#include <algorithm>
#include <array>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"
#include "formats/io/hash.h"
#include "formats/io/random_access_file.h"

namespace citcat {

namespace {

// The seek table of zstd's seekable format (contrib/seekable_format in its sources).
constexpr std::uint32_t kSeekTableFrameMagic = 0x184d2a5e;
constexpr std::uint32_t kSeekTableMagic = 0x8f92eab1;
constexpr std::size_t kSeekTableFooterBytes = 9;
constexpr std::size_t kSeekTableRowBytes = 8;
constexpr std::size_t kSkippableHeaderBytes = 8;

/// First version: rows end before the place.
constexpr std::array<std::uint8_t, 8> kIndexTextV1{'C', 'C', 'K', 'T', 'I', 'N', 'D', 'X'};
constexpr std::size_t kIndexRowBytesV1 = 40;
/// Second version.
constexpr std::array<std::uint8_t, 8> kIndexText{'C', 'C', 'K', 'T', 'I', 'D', 'X', '2'};
constexpr std::size_t kIndexRowBytes = 40 + 8 + 4 + 4 + 8 + 8;
/// The most bytes of notes that are read into memory.
constexpr std::uint64_t kMaxNotesFrame = std::uint64_t{1} << 28;

/// The index frame, which the last row of the seek table is of. Everything before it is frames.
struct IndexPlace {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// What the seek table's end says: frames in the file, the index among them.
std::uint64_t read_frame_count(const RandomAccessFile& file) {
  constexpr std::size_t kTail = kSeekTableRowBytes + kSeekTableFooterBytes;
  if (file.size() < kTail) {
    throw FormatError(file.path(), file.size(), "expected the seek table of a KT file, found none");
  }
  const std::uint64_t at = file.size() - kSeekTableFooterBytes;
  const auto bytes = file.read(at, kSeekTableFooterBytes, "seek table");
  ByteReader in(bytes, file.path(), at);
  const std::uint64_t frames = in.u32("number of frames");
  in.u8("seek table descriptor");
  if (in.u32("seek table magic") != kSeekTableMagic || frames == 0) {
    in.fail_at(at, "expected the seek table of a KT file, found something else");
  }
  return frames;
}

IndexPlace find_index(const RandomAccessFile& file) {
  const std::uint64_t rows_bytes = read_frame_count(file) * kSeekTableRowBytes;
  const std::uint64_t table_bytes = kSkippableHeaderBytes + rows_bytes + kSeekTableFooterBytes;
  if (file.size() < table_bytes) {
    throw FormatError(file.path(), 0, "expected the whole seek table of a KT file, found it cut");
  }
  const std::uint64_t table = file.size() - table_bytes;
  const auto bytes = file.read(table + kSkippableHeaderBytes, rows_bytes, "seek table");
  ByteReader in(bytes, file.path(), table + kSkippableHeaderBytes);
  std::uint64_t stored = 0, last = 0;
  while (!in.at_end()) {
    last = in.u32("size of a frame");
    in.u32("content of a frame");
    stored += last;
  }
  // In joined files the last one's table and index count from where that file began.
  if (stored != table) {
    in.fail_at(table, "expected a seek table of the " + std::to_string(table) +
                          " bytes before it, found one of " + std::to_string(stored));
  }
  return {table - last, last};
}

/// Adds, or throws where no file has as much.
void add(std::uint64_t& sum, std::uint64_t more, const ByteReader& in) {
  if (more > ~std::uint64_t{0} - sum) in.fail("KT index: expected totals of a trace, found more");
  sum += more;
}

/// A frame that a row names lies before the index, or throws.
void check_frame(std::uint64_t offset, std::uint64_t bytes, std::uint64_t index_offset,
                 const ByteReader& in) {
  if (offset <= index_offset && bytes <= index_offset - offset) return;
  in.fail("KT index: expected a frame before it, found one that ends after it");
}

/// What the second version of a row adds.
void read_place(ByteReader& in, KtSegment& segment) {
  segment.placed = true;
  segment.place.instruction = in.u64("instruction");
  segment.place.iteration = in.u32("iteration");
  const std::uint32_t bits = in.u32("size of the code");
  if (bits != 0 && bits != 16 && bits != 32 && bits != 64) {
    in.fail("KT index: size of the code: expected 0, 16, 32 or 64, found " + std::to_string(bits));
  }
  segment.place.bits = static_cast<std::uint8_t>(bits);
  segment.notes_offset = in.u64("offset of notes");
  segment.notes_bytes = in.u64("bytes of notes");
}

/// The rows of the index, which lies after the segments' frames.
std::vector<KtSegment> read_rows(ByteReader& in, std::uint64_t index_offset, bool with_places) {
  std::vector<KtSegment> result;
  KtSegment segment;
  while (!in.at_end()) {
    add(segment.first_instruction, segment.instructions, in);
    add(segment.kt_offset, segment.kt_bytes, in);
    segment.instructions = in.u64("instructions");
    segment.kt_bytes = in.u64("KT bytes");
    segment.file_offset = in.u64("frame offset");
    segment.stored_bytes = in.u64("frame size");
    segment.content_bytes = in.u64("content size");
    check_frame(segment.file_offset, segment.stored_bytes, index_offset, in);
    if (with_places) {
      read_place(in, segment);
      check_frame(segment.notes_offset, segment.notes_bytes, index_offset, in);
    }
    result.push_back(segment);
  }
  return result;
}

}  // namespace

std::vector<std::uint8_t> skippable_frame(std::uint32_t magic, std::span<const std::uint8_t> body) {
  ByteWriter out;
  out.u32(magic);
  out.u32(static_cast<std::uint32_t>(body.size()));
  out.bytes(body);
  return out.take();
}

std::vector<std::uint8_t> encode_kt_index(std::span<const KtSegment> segments,
                                          std::vector<SeekTableEntry> frames) {
  ByteWriter index;
  index.bytes(kIndexText);
  index.u32(static_cast<std::uint32_t>(segments.size()));
  for (const KtSegment& segment : segments) {
    index.u64(segment.instructions);
    index.u64(segment.kt_bytes);
    index.u64(segment.file_offset);
    index.u64(segment.stored_bytes);
    index.u64(segment.content_bytes);
    index.u64(segment.place.instruction);
    index.u32(segment.place.iteration);
    index.u32(segment.place.bits);
    index.u64(segment.notes_offset);
    index.u64(segment.notes_bytes);
  }
  index.u64(hash64(index.view()));
  std::vector<std::uint8_t> out = skippable_frame(kSkippableMagic, index.view());

  frames.push_back({out.size(), 0});
  ByteWriter table;
  for (const SeekTableEntry& frame : frames) {
    table.u32(static_cast<std::uint32_t>(frame.stored_bytes));
    table.u32(static_cast<std::uint32_t>(frame.content_bytes));
  }
  table.u32(static_cast<std::uint32_t>(frames.size()));
  table.u8(0);  // no checksums here: the frames have their own
  table.u32(kSeekTableMagic);
  const auto table_frame = skippable_frame(kSeekTableFrameMagic, table.view());
  out.insert(out.end(), table_frame.begin(), table_frame.end());
  return out;
}

std::vector<KtSegment> read_kt_index(const std::string& path) {
  const RandomAccessFile file(path);
  const IndexPlace place = find_index(file);
  const auto bytes = file.read(place.offset, place.bytes, "index");
  ByteReader in(bytes, path, place.offset);
  in.skip(kSkippableHeaderBytes, "index frame header");
  constexpr std::size_t kHashBytes = 8;
  if (in.remaining() < kIndexText.size() + 4 + kHashBytes) {
    in.fail("expected the index of a KT file, found " + std::to_string(place.bytes) + " bytes");
  }
  const auto body = in.bytes(in.remaining() - kHashBytes, "index");
  const auto begins_with = [&](const auto& text) {
    return std::equal(text.begin(), text.end(), body.begin());
  };
  const bool first_version = begins_with(kIndexTextV1);
  if (!(first_version || begins_with(kIndexText)) || in.u64("index hash") != hash64(body)) {
    in.fail_at(place.offset, "expected the index of a KT file, found something else");
  }
  ByteReader rows(body.subspan(kIndexText.size()), path, place.offset);
  const std::uint64_t count = rows.u32("number of segments");
  if (rows.remaining() != count * (first_version ? kIndexRowBytesV1 : kIndexRowBytes)) {
    rows.fail("expected rows for " + std::to_string(count) + " segments, found " +
              std::to_string(rows.remaining()) + " bytes");
  }
  return read_rows(rows, place.offset, !first_version);
}

std::vector<KtNote> read_kt_notes(const std::string& path, const KtSegment& segment) {
  if (segment.notes_bytes == 0) return {};
  if (segment.notes_bytes > kMaxNotesFrame) {
    throw FormatError(path, segment.notes_offset, "expected notes of a segment, found too many");
  }
  const RandomAccessFile file(path);
  const auto frame = file.read(segment.notes_offset, segment.notes_bytes, "notes");
  return decode_kt_notes(frame, segment.kt_offset, path, segment.notes_offset);
}

}  // namespace citcat
