// Stand-ins for the commands of the part "debugger".

#include "cli/parts/absent_command.h"

namespace citcat {
namespace {

constexpr char kDebuggerPart[] = "debugger";

}  // namespace

extern const Command kDebugCommand = absent_command<kDebuggerPart>("debug");
extern const Command kDapCommand = absent_command<kDebuggerPart>("dap");

}  // namespace citcat
