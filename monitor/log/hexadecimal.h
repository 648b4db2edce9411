#pragma once
// Numbers in the lines that QEMU prints.

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace citcat::monitor {

/// Finds "key" in the line and parses the hexadecimal number after it.
template <typename T>
bool hex_after(std::string_view line, std::string_view key, T& value) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return false;
  const char* begin = line.data() + at + key.size();
  const char* const end = line.data() + line.size();
  std::uint64_t wide = 0;
  const auto result = std::from_chars(begin, end, wide, 16);
  value = static_cast<T>(wide);
  return result.ec == std::errc{};
}

}  // namespace citcat::monitor
