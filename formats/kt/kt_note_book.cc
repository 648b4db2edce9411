#include "formats/kt/kt_note_book.h"

#include <optional>

#include "formats/kt/kt_shape.h"

namespace citcat {

/// A note that is there by now says where the record at `at` is.
bool KtNoteBook::is_placed(std::uint64_t at) const {
  for (const KtNote& note : coming_) {
    if (note.at > at) return false;
    if (note.at == at && note.kind == KtNote::Kind::place) return true;
  }
  return false;
}

/// Those that are before the record at `at`, or earlier.
void KtNoteBook::pass_notes(std::uint64_t at) {
  while (!coming_.empty() && coming_.front().at <= at) {
    const KtNote& note = coming_.front();
    if (note.kind == KtNote::Kind::place) counter_.set(note.place);
    if (!note.implied) passed_.push_back(note);
    coming_.pop_front();
  }
}

KtPlace KtNoteBook::pass(std::span<const std::uint8_t> records) {
  const std::uint64_t end = at_ + records.size();
  if (!records.empty() && is_placed(at_) && is_placed(end)) {
    pass_notes(at_);
    const KtPlace begin = counter_.place();
    pass_notes(end - 1);
    at_ = end;
    return begin;
  }
  std::optional<KtPlace> first;
  for (std::size_t i = 0; i < records.size();) {
    pass_notes(at_ + i);
    const KtShape record = kt_shape(records.subspan(i), at_ + i, form_);
    i += record.bytes;
    if (!record.instruction) continue;
    const KtPlace place = counter_.next(record.ip, record.code, record.addresses, record.bits64);
    if (!first) first = place;
  }
  at_ = end;
  return first.value_or(counter_.place());
}

std::vector<std::uint8_t> KtNoteBook::take() {
  std::vector<std::uint8_t> frame;
  if (!passed_.empty()) frame = encode_kt_notes(passed_, begin_);
  passed_.clear();
  begin_ = at_;
  return frame;
}

std::vector<std::uint8_t> KtNoteBook::take_all() {
  pass_notes(at_);
  return take();
}

}  // namespace citcat
