#include "capture/bus/text_fields.h"

#include <charconv>

#include "formats/io/line_reader.h"

namespace citcat {

void split_fields(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<std::uint64_t> parse_number(std::string_view field, int base, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, base);
  if (error != std::errc() || end != field.data() + field.size() || value > max) {
    return std::nullopt;
  }
  return value;
}

}  // namespace citcat
