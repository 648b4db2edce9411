// Finds the intact chunks of an archive that may be damaged, and saves them.

#include <algorithm>
#include <utility>

#include "events/archive/container_layout.h"
#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"

namespace citcat {

using namespace container_layout;

namespace {

/// Reads every byte of a container and sorts it into intact chunks and damage.
class Scanner {
 public:
  explicit Scanner(const std::string& path) : file_(path) { scan_.file_bytes = file_.size(); }

  ContainerScan run(const std::function<void()>& between) {
    check_header();
    std::uint64_t offset = std::min(kFileHeaderBytes, file_.size());
    while (offset < file_.size()) {
      offset = step(offset);
      if (between) between();
    }
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

  /// After bytes without a header, the ordinal of what follows says how many chunks they were.
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
    // Messages of FormatError begin with file and offset, which are beside the message here.
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

ContainerScan scan_container(const std::string& path, const std::function<void()>& between) {
  return Scanner(path).run(between);
}

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
