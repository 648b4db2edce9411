#include "tools/guest/guest.h"

namespace citcat::tools {

std::optional<std::vector<std::uint8_t>> Guest::bytes(LinearAddr at, std::size_t size) const {
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < size; ++i) {
    const std::optional<std::uint8_t> value = byte(onward(at, i));
    if (!value) return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<std::uint64_t> Guest::word(LinearAddr at) const {
  const auto b = bytes(at, word_bytes());
  if (!b) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = b->size(); i-- > 0;) value = value << 8 | (*b)[i];
  return value;
}

std::optional<std::string> Guest::text(LinearAddr at, std::size_t most) const {
  std::string result;
  while (result.size() < most) {
    const std::optional<std::uint8_t> value = byte(onward(at, result.size()));
    if (!value) return std::nullopt;
    if (*value == 0) break;
    result.push_back(static_cast<char>(*value));
  }
  return result;
}

}  // namespace citcat::tools
