#pragma once
// A divergence as the commands print it.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/session/replay_report.h"

namespace citcat {

/// Null when there is none. `clock_hz`: clocks of the capture a second (events/capture_time.h), 0
/// if it is not known.
nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence,
                                       double clock_hz = 0);
std::vector<std::string> divergence_lines(const Divergence& divergence, double clock_hz = 0);

}  // namespace citcat
