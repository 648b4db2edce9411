#pragma once

#include <string>
#include <string_view>

#include "formats/io/error.h"
#include "tools/mdl/syntax.h"

namespace citcat::mdl {

/// An error in a text in MDL. what(): "NAME:LINE:COLUMN: expected EXPECTED, found FOUND".
class TextError : public FormatError {
 public:
  TextError(const std::string& name, Place at, const std::string& message, std::string excerpt)
      : FormatError(name + ":" + std::to_string(at.line), at.column, message),
        excerpt_(std::move(excerpt)) {}
  /// The line itself and a caret below the place: two lines of characters that can be printed.
  const std::string& excerpt() const { return excerpt_; }

 private:
  std::string excerpt_;
};

/// A text in MDL under the name that messages call it by.
class Source {
 public:
  Source(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  /// Throws TextError. `found` empty: what is there.
  [[noreturn]] void refuse(Place at, const std::string& expected, std::string found = {}) const;

 private:
  std::string_view line(std::size_t number) const;
  std::string found_at(Place at) const;

  std::string name_, text_;
};

/// The definitions of the text. Throws TextError where it is no MDL.
Program parse(const Source& source);

}  // namespace citcat::mdl
