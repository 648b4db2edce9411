#pragma once
// Lines of a text stream, for the text formats of logic analysers.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/io/input.h"
#include "formats/text/utf16.h"

namespace citcat {

/// The byte-order mark that editors and Windows programs put before a text in UTF-8 (Unicode 15,
/// 23.8); not a part of the text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

/// Reads a stream line by line. A line ends with LF or CR LF; the last one need not end at all. A
/// byte-order mark at the beginning is passed over; after that of UTF-16, lines are read as UTF-8.
class LineReader {
 public:
  /// `line_end`: '\r' for the text files of old Macintoshes, which have no LF at all.
  explicit LineReader(std::unique_ptr<InputStream> input, char line_end = '\n')
      : owned_(std::move(input)), input_(owned_.get()), line_end_(line_end) {}
  /// Reads a stream that somebody else keeps alive, and leaves alone meanwhile.
  explicit LineReader(InputStream& input) : input_(&input) {}

  /// The next line without its end; valid until the next call. False at the end of the stream.
  /// FormatError for a line of more than kMaxLine bytes: no text file has those.
  bool next(std::string_view& line);
  /// Number of the line returned last, from 1.
  std::uint64_t number() const { return number_; }
  /// The line returned last is the end of the file, and has no line end: it may have been longer.
  bool is_open_end() const { return open_end_; }
  const std::string& name() const { return input_->name(); }
  /// Throws FormatError at the current line; says so where the file ends within it.
  [[noreturn]] void fail(const std::string& message) const;

  static constexpr std::size_t kMaxLine = std::size_t{1} << 16;

 private:
  void skip_mark();

  std::unique_ptr<InputStream> owned_;  ///< null when somebody else owns it
  InputStream* input_;
  char line_end_ = '\n';
  std::optional<Utf16Decoder> wide_;  ///< where the text is in UTF-16
  std::string decoded_;               ///< by it
  std::string_view block_;            ///< unread part of what the stream handed out
  std::string joined_;                ///< a line that began in an earlier block
  std::uint64_t number_ = 0;
  bool open_end_ = false;
};

/// The beginning of `text` for a message: at most 40 of its bytes, those that are no printable
/// ASCII as \xHH.
std::string shown(std::string_view text);
/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);
/// `text` as a decimal number without sign; nullopt-like false for anything else.
bool parse_decimal(std::string_view text, std::uint64_t& value);
/// `text` as a hexadecimal number, with or without 0x or h; false for anything else.
bool parse_hexadecimal(std::string_view text, std::uint64_t& value);

}  // namespace citcat
