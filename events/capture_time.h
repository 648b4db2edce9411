#pragma once
// Moments of a capture: in clocks, and as people name them, "1.5ms" from its beginning.

#include <cstdint>
#include <optional>
#include <string>

#include "events/recording.h"

namespace citcat {

/// Clocks a second of the capture that a recording was made of: the rate of its samples; 0 if not
/// known.
double clock_rate(const Provenance& provenance);

/// The first clock, or sample, at or after `seconds`, of `rate` a second.
std::uint64_t clock_at(double seconds, double rate);

/// A number and a unit, s, ms, us or ns, as seconds; nullopt for text that is something else. No
/// sign, no blanks.
std::optional<double> parse_capture_time(const std::string& text);

/// When `clock` was, of `rate` a second: "0.001500000s", which parse_capture_time() takes back.
std::string capture_time_text(std::uint64_t clock, double rate);

}  // namespace citcat
