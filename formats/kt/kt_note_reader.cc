#include "formats/kt/kt_note_reader.h"

#include <utility>

#include "formats/io/error.h"

namespace citcat {

KtNoteReader::KtNoteReader(std::string path) : path_(std::move(path)) {
  try {
    segments_ = read_kt_index(path_);
  } catch (const FormatError&) {
    segments_.clear();
  }
}

const KtSegment* KtNoteReader::seek(std::uint64_t instruction, std::uint32_t iteration) {
  segment_ = at_ = 0;
  notes_.clear();
  if (!places()) return nullptr;
  // Not one that begins there too: what happened before it lies in the segment before.
  const auto begins_before = [&](const KtSegment& s) {
    return s.place.instruction < instruction ||
           (s.place.instruction == instruction && s.place.iteration < iteration);
  };
  for (std::size_t i = 1; i < segments_.size() && begins_before(segments_[i]); ++i) segment_ = i;
  return &segments_[segment_];
}

const KtNote* KtNoteReader::next(std::uint64_t at) {
  while (at_ == notes_.size()) {
    if (segment_ == segments_.size() || segments_[segment_].kt_offset > at) return nullptr;
    notes_ = read_kt_notes(path_, segments_[segment_++]);
    at_ = 0;
  }
  return notes_[at_].at <= at ? &notes_[at_++] : nullptr;
}

}  // namespace citcat
