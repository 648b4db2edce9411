// Stand-ins for the commands of the part "monitor".

#include "cli/parts/absent_command.h"

namespace citcat {
namespace {

constexpr char kMonitorPart[] = "monitor";

}  // namespace

extern const Command kRecordCommand = absent_command<kMonitorPart>("record");

}  // namespace citcat
