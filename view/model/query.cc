#include "view/model/query.h"

#include <fmt/format.h>

#include <charconv>

#include "formats/io/error.h"

namespace citcat::view {

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string Query::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second;
}

std::string Query::required(const std::string& name) const {
  if (!has(name)) throw UsageError(name + " is missing");
  return text(name);
}

std::uint64_t Query::number(const std::string& name, std::uint64_t usual,
                            std::uint64_t most) const {
  if (!has(name)) return usual;
  const std::string given = text(name);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), value);
  if (given.empty() || error != std::errc() || end != given.data() + given.size() || value > most) {
    throw UsageError(fmt::format("{}: expected a number up to {}, found '{}'", name, most, given));
  }
  return value;
}

std::uint64_t Query::hexadecimal(const std::string& name) const {
  const std::string given = required(name);
  const auto value = parse_hex(given);
  if (!value) {
    throw UsageError(name + ": expected a hexadecimal address, found '" + given + "'");
  }
  return *value;
}

}  // namespace citcat::view
