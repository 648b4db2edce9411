#pragma once
// Prints the result of `verify --account`: the basis of a verdict.

#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "replay/run/accounting.h"

namespace citcat {

/// Null when there is none.
nlohmann::ordered_json accounting_json(const std::optional<Accounting>& accounting);
std::vector<std::string> accounting_lines(const Accounting& accounting);

}  // namespace citcat
