#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "events/position.h"

namespace citcat {

/// "N", or "N+K" within a REP instruction.
std::string position_text(Position position);
/// The position of such a text; nullopt for any other.
std::optional<Position> parse_position(std::string_view text);

/// A place that may begin with the number of a processor: "P:PLACE", or "PLACE".
struct ProcessorPlace {
  std::optional<unsigned> processor;
  std::string place;
};
/// nullopt where a colon has no number before it, or nothing after it.
std::optional<ProcessorPlace> split_processor(std::string_view text);

}  // namespace citcat
