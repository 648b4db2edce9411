#pragma once
// Why a replay diverged from its evidence, as `explain --json` prints it.

#include <nlohmann/json_fwd.hpp>

#include "events/hint.h"
#include "replay/diagnose/explanation.h"

namespace citcat {

/// `hints`: all that are to be passed back. `clock_hz`: clocks of the capture a second, 0 if not
/// known.
nlohmann::ordered_json explanation_json(const Explanation& explanation, const HintFile& hints,
                                        double clock_hz);

}  // namespace citcat
