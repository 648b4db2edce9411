#pragma once
// Lines and comma-separated fields of text captures, with the checks that keep binary data and
// endless lines out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/input.h"

namespace citcat {

/// Lines of a text stream, without their ends (LF or CR LF).
class TextLines {
 public:
  explicit TextLines(InputStream& input) : input_(&input) {}
  /// The next line, valid until the next call. False at the end. A line longer than 64 KiB throws
  /// FormatError with its number.
  bool next(std::string_view& line);
  /// Number of the line next() returned last, from 1.
  std::uint64_t number() const { return number_; }
  const std::string& name() const { return input_->name(); }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  InputStream* input_;
  std::string line_;
  std::uint64_t number_ = 0;
};

/// The fields between commas; blanks around a field are dropped. Quotes have no meaning.
void split_fields(std::string_view line, std::vector<std::string_view>& fields);

/// A whole field as a number in `base` (10 or 16) of at most `max`; nullopt when it is not one.
std::optional<std::uint64_t> parse_number(std::string_view field, int base,
                                          std::uint64_t max = ~std::uint64_t{0});

}  // namespace citcat
