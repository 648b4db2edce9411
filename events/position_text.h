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

}  // namespace citcat
