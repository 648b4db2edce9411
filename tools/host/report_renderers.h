#pragma once
// Reports as text, JSON and CSV.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tools/host/report.h"

namespace citcat::tools {

/// Values are members, groups objects, tables arrays of objects.
nlohmann::ordered_json report_json(const Report& report);
/// Lines for people, each indented by `indent` blanks. Texts begin no lines of their own.
std::string report_text(const Report& report, unsigned indent = 0);
/// A table for each table of the report, an empty line between two: first a line with the path to
/// it
/// ("count.mix"), then one of keys. The values of a group are a table with the columns key, value
/// and unit. RFC 4180 except for the line feeds. `path`: of the report.
std::string report_csv(const Report& report, const std::string& path);
/// Fields of that which a spreadsheet would take for formulas.
std::uint64_t formula_fields(const Report& report);

}  // namespace citcat::tools
