#include "formats/io/line_reader.h"

#include <algorithm>

#include "formats/io/error.h"

namespace citcat {

bool LineReader::next(std::string_view& line) {
  joined_.clear();
  if (number_ == 0 && input_->offset() == 0) skip_mark();
  for (;;) {
    if (block_.empty()) {
      const auto bytes = input_->next_block();
      if (bytes.empty()) {
        if (joined_.empty()) return false;
        line = joined_;
        open_end_ = true;
        break;
      }
      if (wide_) {
        decoded_ = wide_->decode(bytes);
        block_ = decoded_;
        continue;
      }
      block_ = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
    const auto end = block_.find(line_end_);
    const std::string_view part = block_.substr(0, end);
    if (joined_.size() + part.size() > kMaxLine) {
      ++number_;
      fail("expected lines of at most " + std::to_string(kMaxLine) + " bytes, found a longer one");
    }
    const bool whole = end != std::string_view::npos;
    block_.remove_prefix(whole ? end + 1 : block_.size());
    if (whole && joined_.empty()) {
      line = part;
      break;
    }
    joined_.append(part);
    if (whole) {
      line = joined_;
      break;
    }
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  ++number_;
  return true;
}

void LineReader::skip_mark() {
  const auto head = input_->peek(kByteOrderMark.size());
  if (std::equal(
          head.begin(), head.end(), kByteOrderMark.begin(), kByteOrderMark.end(),
          [](std::uint8_t byte, char mark) { return byte == static_cast<std::uint8_t>(mark); }))
    input_->consume(kByteOrderMark.size());
  wide_ = Utf16Decoder::for_text(input_->peek(2));
}

void LineReader::fail(const std::string& message) const {
  throw FormatError(name(), number_,
                    message + (open_end_ ? "; the file ends within this line, it may be cut" : ""));
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMax = 40;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char c : text.substr(0, kMax)) {
    if (c >= ' ' && c <= '~') {
      result += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    result += "\\x";
    result += kDigits[byte >> 4];
    result += kDigits[byte & 15];
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool parse_decimal(std::string_view text, std::uint64_t& value) {
  if (text.empty() || text.size() > 19) return false;
  value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return true;
}

bool parse_hexadecimal(std::string_view text, std::uint64_t& value) {
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
    text.remove_prefix(2);
  if (text.size() > 1 && (text.back() == 'h' || text.back() == 'H')) text.remove_suffix(1);
  if (text.empty() || text.size() > 16) return false;
  value = 0;
  for (const char c : text) {
    unsigned digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<unsigned>(c - 'A') + 10;
    } else {
      return false;
    }
    value = value << 4 | digit;
  }
  return true;
}

}  // namespace citcat
