#include "debugger/dap/message_reader.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <charconv>

#include "formats/io/error.h"
#include "formats/text/printable_text.h"

namespace citcat::dap {
namespace {

constexpr std::string_view kEndOfHeader = "\r\n\r\n", kEndOfLine = "\r\n";
constexpr std::string_view kLength = "Content-Length:";

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  return "'" + printable_text(std::string(text.substr(0, kMost))) + "'";
}

}  // namespace

void MessageReader::refuse(const std::string& found) const {
  throw FormatError("client", taken_,
                    "expected a message with Content-Length before it, found " + found);
}

/// The length that a header says; `header` is without its last line end.
std::size_t MessageReader::length_in(std::string_view header) const {
  std::optional<std::size_t> length;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(kEndOfLine), header.size());
    std::string_view line = header.substr(0, end);
    header.remove_prefix(std::min(end + kEndOfLine.size(), header.size()));
    if (line.size() < kLength.size() ||
        strncasecmp(line.data(), kLength.data(), kLength.size()) != 0) {
      // Content-Type is the only other one that there may be.
      constexpr std::string_view kOther = "Content-Type:";
      if (strncasecmp(line.data(), kOther.data(), std::min(line.size(), kOther.size())) == 0) {
        continue;
      }
      refuse(shown(line));
    }
    line.remove_prefix(kLength.size());
    while (line.starts_with(' ')) line.remove_prefix(1);
    std::size_t value = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || rest != line.data() + line.size()) refuse(shown(line));
    if (value > kLongestBody) refuse(fmt::format("one of {} bytes", value));
    length = value;
  }
  if (!length) refuse("a header without it");
  return *length;
}

std::optional<std::string> MessageReader::take() {
  // Bytes that begin no header are refused as soon as that shows.
  const std::string_view begin = std::string_view(buffer_).substr(0, kLength.size());
  if (!begin.empty() &&
      strncasecmp(begin.data(), "Content-", std::min<std::size_t>(begin.size(), 8)) != 0) {
    refuse(shown(buffer_));
  }
  const std::size_t end = buffer_.find(kEndOfHeader);
  if (end == std::string::npos) {
    if (buffer_.size() > kLongestHeader) refuse("a header without an end");
    return std::nullopt;
  }
  if (end > kLongestHeader) refuse(fmt::format("a header of {} bytes", end));
  const std::size_t length = length_in(std::string_view(buffer_).substr(0, end));
  const std::size_t body = end + kEndOfHeader.size();
  if (buffer_.size() - body < length) return std::nullopt;
  std::string message = buffer_.substr(body, length);
  buffer_.erase(0, body + length);
  taken_ += body + length;
  return message;
}

}  // namespace citcat::dap
