#pragma once
// Moments as links and requests have them: "123", "123+4" within a REP instruction, and "123~5" for
// one of several moments of a position, by deliveries before it (replay/session/moment.h).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "replay/session/moment.h"

namespace citcat::view {

/// A requested place: the first moment of the position where no delivery count is given.
struct WantedMoment {
  Position position;
  std::optional<std::uint64_t> deliveries;
};

std::string moment_text(const Moment& moment);
std::optional<WantedMoment> parse_moment(std::string_view text);

}  // namespace citcat::view
