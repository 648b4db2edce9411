#pragma once
// The place where two recorded runs separate, as a page shows it.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/console.h"

namespace citcat {

/// One side of a comparison: a recording from an instruction on.
struct ComparedSide {
  std::string recording;
  std::uint64_t from = 0;
};

/// `parting` of the answer to `runs` (docs/formats/view-interface.md); null in a build without the
/// part "sql".
nlohmann::ordered_json parting_json(const ComparedSide& a, const ComparedSide& b,
                                    const Console& console);

}  // namespace citcat
