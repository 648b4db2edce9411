#include "events/position_text.h"

#include <charconv>

namespace citcat {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return result.ec == std::errc{} && result.ptr == end;
}

}  // namespace

std::string position_text(Position position) {
  std::string text = std::to_string(position.instruction);
  if (position.iteration != 0) text += "+" + std::to_string(position.iteration);
  return text;
}

std::optional<Position> parse_position(std::string_view text) {
  Position position;
  const std::size_t plus = text.find('+');
  if (!parse_number(text.substr(0, plus), position.instruction)) return std::nullopt;
  if (plus != std::string_view::npos && !parse_number(text.substr(plus + 1), position.iteration)) {
    return std::nullopt;
  }
  return position;
}

std::optional<ProcessorPlace> split_processor(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return ProcessorPlace{std::nullopt, std::string(text)};
  unsigned processor = 0;
  if (colon + 1 == text.size() || !parse_number(text.substr(0, colon), processor)) {
    return std::nullopt;
  }
  return ProcessorPlace{processor, std::string(text.substr(colon + 1))};
}

}  // namespace citcat
