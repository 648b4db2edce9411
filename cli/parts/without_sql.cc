// Stand-ins for the commands of the part "sql", and for comparisons.

#include <nlohmann/json.hpp>

#include "cli/compare/parting.h"
#include "cli/parts/absent_command.h"

namespace citcat {
namespace {

constexpr char kSqlPart[] = "sql";

}  // namespace

extern const Command kSqlCommand = absent_command<kSqlPart>("sql");
extern const Command kDiffCommand = absent_command<kSqlPart>("diff");
extern const Command kCompareCommand = absent_command<kSqlPart>("compare");

nlohmann::ordered_json parting_json(const ComparedSide&, const ComparedSide&, const Console&) {
  return nullptr;
}

}  // namespace citcat
