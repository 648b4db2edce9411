#pragma once
// Places and notes of a trace that is being written to a file with an index.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "formats/kt/kt.h"
#include "formats/kt/kt_counter.h"
#include "formats/kt/kt_note.h"

namespace citcat {

/// Knows where each segment of a trace begins, from its records and their notes.
class KtNoteBook {
 public:
  /// Sets the form of the records that follow; the mark of the wide form does so too.
  void set_form(KtForm form) { form_ = form; }
  /// In the order of `at`; before the records after it are passed.
  void add(const KtNote& note) { coming_.push_back(note); }
  /// The next records, whole ones. Returns where the first instruction among them is. They are
  /// not looked at where notes tell both that and where those after them begin.
  KtPlace pass(std::span<const std::uint8_t> records);
  /// What was noted within the records passed since the last call, as a frame; empty when nothing
  /// was.
  std::vector<std::uint8_t> take();
  /// The same with the notes after the last record.
  std::vector<std::uint8_t> take_all();
  /// Whether there are notes that take() has not returned yet.
  bool has_rest() const { return !coming_.empty() || !passed_.empty(); }

 private:
  bool is_placed(std::uint64_t at) const;
  void pass_notes(std::uint64_t at);

  KtForm form_ = KtForm::narrow;
  KtCounter counter_;
  std::deque<KtNote> coming_;
  std::vector<KtNote> passed_;
  std::uint64_t at_ = 0;     ///< bytes of KT passed
  std::uint64_t begin_ = 0;  ///< of them when take() was called last
};

}  // namespace citcat
