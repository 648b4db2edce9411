// Stand-ins for the tools of the part "report".

#include "tools/parts/absent_tool.h"

namespace citcat::tools {
namespace {

constexpr char kReportPart[] = "report";

}  // namespace

extern const ToolRow kMapTool = absent_tool<kReportPart>("map");
extern const ToolRow kMomentsTool = absent_tool<kReportPart>("moments");
extern const ToolRow kTreeTool = absent_tool<kReportPart>("tree");

}  // namespace citcat::tools
