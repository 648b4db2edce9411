#pragma once
// Finding instructions in a KT file of several zstd frames: citcat's own index and the seek table
// of zstd's seekable format, both in skippable frames at the end (docs/formats/kt.md).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/kt/kt_note.h"

namespace citcat {

/// A part of the trace that is read on its own.
struct KtSegment {
  std::uint64_t file_offset = 0;        ///< of its zstd frame
  std::uint64_t stored_bytes = 0;       ///< of that frame
  std::uint64_t content_bytes = 0;      ///< of the frame's content
  std::uint64_t first_instruction = 0;  ///< instruction records before it
  std::uint64_t instructions = 0;       ///< instruction records
  std::uint64_t kt_offset = 0;          ///< bytes of KT before it
  std::uint64_t kt_bytes = 0;
  bool placed = false;  ///< the file says where it begins; first version of the index: does not
  KtPlace place;        ///< of its first instruction record, where `placed`
  std::uint64_t notes_offset = 0;  ///< of the frame with its notes
  std::uint64_t notes_bytes = 0;   ///< of that frame; 0: there are none
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
/// The end of the file: the index, then the seek table of `frames` (all before the index) and it.
std::vector<std::uint8_t> encode_kt_index(std::span<const KtSegment> segments,
                                          std::vector<SeekTableEntry> frames);

/// The segments of the trace `path`. Throws FormatError when it has no index, or not of all of it.
std::vector<KtSegment> read_kt_index(const std::string& path);
/// The notes of one of them. Throws FormatError for damaged ones.
std::vector<KtNote> read_kt_notes(const std::string& path, const KtSegment& segment);

}  // namespace citcat
