#pragma once
// Moments of a capture as people name them: "1.5ms" from its beginning.

#include <cstdint>
#include <optional>
#include <string>

namespace citcat {

/// A number and a unit, s, ms, us or ns, as seconds; nullopt for text that is something else. No
/// sign, no blanks.
std::optional<double> parse_capture_time(const std::string& text);

/// The first sample or clock at or after `seconds`, of `rate` a second.
std::uint64_t clock_at(double seconds, double rate);

}  // namespace citcat
