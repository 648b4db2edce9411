#pragma once
// Why a replay left its evidence, as `explain --json` tells it.

#include <nlohmann/json.hpp>

#include "events/hint.h"
#include "replay/diagnose/explanation.h"

namespace citcat {

/// `hints`: all that are to be passed back.
nlohmann::ordered_json explanation_json(const Explanation& explanation, const HintFile& hints);

}  // namespace citcat
