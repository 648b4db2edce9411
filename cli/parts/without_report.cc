// Stand-ins for the commands of the part "report".

#include "cli/parts/absent_command.h"

namespace citcat {
namespace {

constexpr char kReportPart[] = "report";

}  // namespace

extern const Command kReportCommand = absent_command<kReportPart>("report");

}  // namespace citcat
