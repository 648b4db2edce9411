#pragma once
// Finding instructions in a KT file of several zstd frames: an index of ours and the seek table of
// zstd's seekable format, both in skippable frames at the end (docs/formats/kt.md).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace citcat {

/// A part of the trace that is read on its own.
struct KtSegment {
  std::uint64_t file_offset = 0;        ///< of its zstd frame
  std::uint64_t stored_bytes = 0;       ///< of that frame
  std::uint64_t content_bytes = 0;      ///< of the frame's content
  std::uint64_t first_instruction = 0;  ///< instructions before it
  std::uint64_t instructions = 0;
  std::uint64_t kt_offset = 0;  ///< bytes of KT before it
  std::uint64_t kt_bytes = 0;
};

/// Magic of the skippable frames that hold what is ours (RFC 8878, 3.1.2).
inline constexpr std::uint32_t kSkippableMagic = 0x184d2a50;
/// `body` as a skippable frame.
std::vector<std::uint8_t> skippable_frame(std::uint32_t magic, std::span<const std::uint8_t> body);

/// A frame of the file, as the seek table lists all of them.
struct SeekTableEntry {
  std::uint64_t stored_bytes = 0;
  std::uint64_t content_bytes = 0;  ///< 0 for skippable frames
};
/// What ends the file: the index, then the seek table of `frames` (all before the index) and it.
std::vector<std::uint8_t> encode_kt_index(std::span<const KtSegment> segments,
                                          std::vector<SeekTableEntry> frames);

/// The segments of the trace `path`. Throws FormatError when it has no index, or not of all of it.
std::vector<KtSegment> read_kt_index(const std::string& path);

}  // namespace citcat
