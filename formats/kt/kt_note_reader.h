#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/kt/kt_index.h"
#include "formats/kt/kt_note.h"

namespace citcat {

/// The notes of a KT file, segment by segment. A file without an index has none.
class KtNoteReader {
 public:
  /// `path` is no pipe. Throws IoError; an index that is missing, or does not cover the whole file,
  /// is ignored.
  explicit KtNoteReader(std::string path);
  /// A reader for a trace without an index.
  KtNoteReader() = default;

  /// The file says where its segments begin.
  bool places() const { return !segments_.empty() && segments_.front().placed; }
  /// The last segment that begins at or before the position; null where there is none such, or the
  /// file does not say. Its notes are the next ones.
  const KtSegment* seek(std::uint64_t instruction, std::uint32_t iteration);
  /// The next note that is before the record `at` bytes from the beginning, or earlier; null:
  /// none does. Valid until the next call. Throws FormatError for damaged notes.
  const KtNote* next(std::uint64_t at);

 private:
  std::string path_;
  std::vector<KtSegment> segments_;
  std::size_t segment_ = 0;  ///< whose notes are read next
  std::vector<KtNote> notes_;
  std::size_t at_ = 0;
};

}  // namespace citcat
