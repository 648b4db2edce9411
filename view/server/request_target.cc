#include "view/server/request_target.h"

namespace citcat::view {

namespace {

constexpr std::size_t kLongest = 4096, kMostParameters = 16;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Percent signs as RFC 3986, 2.1, has them; of a query also "+" for a blank.
std::optional<std::string> decoded(std::string_view text, bool is_query) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && is_query) {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = digit(text[i + 1]), low = digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return plain;
}

}  // namespace

std::optional<RequestTarget> parse_target(std::string_view target) {
  if (target.size() > kLongest || target.empty() || target.front() != '/') return std::nullopt;
  const std::size_t mark = target.find('?');
  RequestTarget result;
  const auto path = decoded(target.substr(0, mark), false);
  if (!path) return std::nullopt;
  result.path = *path;
  if (mark == std::string_view::npos) return result;
  std::string_view query = target.substr(mark + 1);
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view part = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const auto name = decoded(part.substr(0, equals), true);
    const auto value = equals == std::string_view::npos ? std::optional<std::string>("")
                                                        : decoded(part.substr(equals + 1), true);
    if (!name || !value || result.parameters.size() >= kMostParameters) return std::nullopt;
    result.parameters[*name] = *value;
  }
  return result;
}

}  // namespace citcat::view
