#include "debugger/protocol/packet_text.h"

#include <numeric>

#include "formats/text/printable_text.h"

namespace citcat::gdb {

namespace {

constexpr char kEscape = '}', kRepeat = '*', kBegin = '$', kEnd = '#';
constexpr char kFlip = 0x20;  ///< what an escaped character is changed by
constexpr int kRepeatBase = 29;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char digit_of(unsigned value) { return "0123456789abcdef"[value & 0xf]; }

}  // namespace

std::uint8_t packet_sum(std::string_view body) {
  return std::accumulate(body.begin(), body.end(), std::uint8_t{0}, [](std::uint8_t sum, char c) {
    return static_cast<std::uint8_t>(sum + static_cast<std::uint8_t>(c));
  });
}

std::string packet_of(std::string_view data) {
  std::string body;
  for (const char c : data) {
    if (c == kEscape || c == kRepeat || c == kBegin || c == kEnd) {
      body += kEscape;
      body += static_cast<char>(c ^ kFlip);
    } else {
      body += c;
    }
  }
  const std::uint8_t sum = packet_sum(body);
  return kBegin + body + kEnd + digit_of(sum >> 4) + digit_of(sum);
}

std::optional<std::string> data_of(std::string_view body) {
  std::string data;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == kEscape) {
      if (++i == body.size()) return std::nullopt;
      data += static_cast<char>(body[i] ^ kFlip);
    } else if (body[i] == kRepeat && !data.empty()) {
      if (++i == body.size() || body[i] < ' ' || body[i] > '~') return std::nullopt;
      data.append(static_cast<std::size_t>(body[i] - kRepeatBase), data.back());
      if (data.size() > kMaxPacketBytes) return std::nullopt;
    } else {
      data += body[i];
    }
  }
  return data;
}

std::string why_not_gdb(std::string_view first_bytes) {
  if (first_bytes.empty() ||
      std::string_view("+-$\x03").find(first_bytes[0]) != std::string::npos) {
    return "";
  }
  return "expected a packet of gdb's remote protocol, found '" +
         printable_text(first_bytes.substr(0, kShownBytes)) + "'";
}

std::string hex_of(std::span<const std::uint8_t> bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const std::uint8_t b : bytes) {
    hex += digit_of(b >> 4);
    hex += digit_of(b);
  }
  return hex;
}

std::string hex_of(std::string_view text) {
  return hex_of({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::string hex_number(std::uint64_t value) {
  std::string hex;
  do {
    hex.insert(hex.begin(), digit_of(static_cast<unsigned>(value & 0xf)));
    value >>= 4;
  } while (value != 0);
  return hex;
}

std::optional<std::vector<std::uint8_t>> bytes_of(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  bytes.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = digit(hex[i]), low = digit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  return bytes;
}

std::optional<std::uint64_t> number_of(std::string_view hex) {
  if (hex.empty() || hex.size() > 16) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : hex) {
    const int d = digit(c);
    if (d < 0) return std::nullopt;
    value = value << 4 | static_cast<std::uint64_t>(d);
  }
  return value;
}

}  // namespace citcat::gdb
