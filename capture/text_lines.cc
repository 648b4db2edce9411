#include "capture/text_lines.h"

#include <algorithm>
#include <charconv>

#include "formats/error.h"

namespace citcat {

bool TextLines::next(std::string_view& line) {
  constexpr std::size_t kMaxLine = 65536;
  constexpr std::size_t kFirstLook = 1024;
  for (std::size_t look = kFirstLook;; look *= 4) {
    const auto bytes = input_->peek(look);
    const auto end = std::find(bytes.begin(), bytes.end(), std::uint8_t{'\n'});
    const bool whole = end != bytes.end() || bytes.size() < look;
    if (!whole && look < kMaxLine) continue;
    if (bytes.empty()) return false;
    ++number_;
    if (!whole) fail("expected a line of text, found more than 65536 bytes without an end");
    line_.assign(bytes.begin(), end);
    input_->consume(line_.size() + (end != bytes.end() ? 1 : 0));
    if (!line_.empty() && line_.back() == '\r') line_.pop_back();
    line = line_;
    return true;
  }
}

void TextLines::fail(const std::string& message) const {
  throw FormatError(input_->name(), number_, message);
}

void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    fields.push_back(field);
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_number(std::string_view field, int base, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(field.data(), field.data() + field.size(), value, base);
  if (error != std::errc() || end != field.data() + field.size() || value > max) {
    return std::nullopt;
  }
  return value;
}

}  // namespace citcat
