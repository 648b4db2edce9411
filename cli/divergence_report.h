#pragma once
// A divergence as the commands print it.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/session/replay_report.h"

namespace citcat {

/// Null when there is none.
nlohmann::ordered_json divergence_json(const std::optional<Divergence>& divergence);
std::vector<std::string> divergence_lines(const Divergence& divergence);

}  // namespace citcat
