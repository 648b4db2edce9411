#pragma once

#include <string>
#include <string_view>

#include "tools/mdl/syntax.h"

namespace citcat::mdl {

/// A text in MDL under the name that messages call it by.
class Source {
 public:
  Source(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  const std::string& text() const { return text_; }
  /// Throws FormatError: "NAME:LINE:COLUMN: expected EXPECTED, found FOUND", the line itself, and a
  /// caret below the place. `found` empty: what stands there.
  [[noreturn]] void refuse(Place at, const std::string& expected, std::string found = {}) const;

 private:
  std::string_view line(std::size_t number) const;
  std::string found_at(Place at) const;

  std::string name_, text_;
};

/// The definitions of the text. Throws FormatError, as Source::refuse() does, where it is no MDL.
Program parse(const Source& source);

}  // namespace citcat::mdl
