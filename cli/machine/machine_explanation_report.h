#pragma once
// Prints what `explain` finds about several processors together.

#include <nlohmann/json_fwd.hpp>

#include "cli/console.h"
#include "replay/diagnose/processors/machine_explanation.h"

namespace citcat {

nlohmann::ordered_json machine_explanation_json(const MachineExplanation& explanation);
void print_machine_explanation(const MachineExplanation& explanation, const Console& console);

}  // namespace citcat
