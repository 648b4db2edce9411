#pragma once
// A place in a text in MDL that advances over its words and symbols. Blanks, line ends and
// comments, which go from // to the end of the line, may be between any two of them.
//
// Facts of the language: the paper (syntax.h), and the tokens of Paradyn's own scanner
// (paradyn/src/met/metScanner.l in the history of Dyninst).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/mdl/parser.h"

namespace citcat::mdl {

class TextCursor {
 public:
  /// Stands at the first word or sign. The source must outlive the object.
  explicit TextCursor(const Source& source) : source_(source) { skip_separators(); }

  Place place() const { return {line_, offset_ - line_begin_ + 1}; }
  bool at_end() const { return offset_ == text().size(); }

  // Each of these moves on, if what it names is here.
  /// A sign; not where one of `unless` is right after it.
  bool take(std::string_view sign, std::string_view unless = {});
  /// A word that is not the beginning of a longer one.
  bool take_word(std::string_view word);
  /// Letters, digits and underscores, not a digit first; a dollar sign may be before them.
  std::optional<std::string> take_name();
  /// Decimal, or hexadecimal with 0x. Throws TextError for one of 10^18 or more.
  std::optional<std::uint64_t> take_number();
  /// Without its quotation marks. Throws TextError where it does not end on its line.
  std::optional<std::string> take_text();

  // The same for what must be here: throws TextError, with what was expected, where it does not.
  void expect(std::string_view sign, const std::string& expected);
  void expect_word(std::string_view word);
  std::string name(const std::string& expected = "a name");
  std::string quoted_text();

  [[noreturn]] void refuse(const std::string& expected, const std::string& found = {}) const {
    source_.refuse(place(), expected, found);
  }
  [[noreturn]] void refuse(Place at, const std::string& expected,
                           const std::string& found = {}) const {
    source_.refuse(at, expected, found);
  }

 private:
  const std::string& text() const { return source_.text(); }
  std::string_view rest() const { return std::string_view(text()).substr(offset_); }
  void move_on(std::size_t length);
  void skip_separators();

  const Source& source_;
  std::size_t offset_ = 0;
  std::size_t line_ = 1, line_begin_ = 0;
};

/// A word of the language and what it stands for.
template <class Value>
struct Word {
  const char* text;
  Value value;
};

/// The value of the word of `words` that is here. Throws TextError, with all of them, where
/// none does.
template <class Value, std::size_t kCount>
Value one_of(TextCursor& in, const Word<Value> (&words)[kCount]) {
  std::string all;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (in.take_word(words[i].text)) return words[i].value;
    all += (i == 0 ? "" : i + 1 == kCount ? " or " : ", ") + std::string(words[i].text);
  }
  in.refuse(all);
}

}  // namespace citcat::mdl
