#include "tools/guest/guest.h"

namespace citcat::tools {

std::optional<std::vector<std::uint8_t>> Guest::bytes(LinearAddr at, std::size_t size) const {
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < size; ++i) {
    const std::optional<std::uint8_t> value = byte(at.plus32(static_cast<std::uint32_t>(i)));
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<std::uint32_t> Guest::dword(LinearAddr at) const {
  const auto b = bytes(at, 4);
  if (!b) return std::nullopt;
  return std::uint32_t{(*b)[0]} | std::uint32_t{(*b)[1]} << 8 | std::uint32_t{(*b)[2]} << 16 |
         std::uint32_t{(*b)[3]} << 24;
}

std::optional<std::string> Guest::text(LinearAddr at, std::size_t most) const {
  std::string result;
  while (result.size() < most) {
    const std::optional<std::uint8_t> value =
        byte(at.plus32(static_cast<std::uint32_t>(result.size())));
    if (!value) return std::nullopt;
    if (*value == 0) break;
    result.push_back(static_cast<char>(*value));
  }
  return result;
}

}  // namespace citcat::tools
