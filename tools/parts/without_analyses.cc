// Stand-ins for the tools of the part "analyses".

#include "tools/parts/absent_tool.h"

namespace citcat::tools {
namespace {

constexpr char kAnalysesPart[] = "analyses";

}  // namespace

extern const ToolRow kNullTool = absent_tool<kAnalysesPart>("null");
extern const ToolRow kCountTool = absent_tool<kAnalysesPart>("count");
extern const ToolRow kBpredTool = absent_tool<kAnalysesPart>("bpred");
extern const ToolRow kCacheTool = absent_tool<kAnalysesPart>("cache");
extern const ToolRow kBranchesTool = absent_tool<kAnalysesPart>("branches");
extern const ToolRow kStringsTool = absent_tool<kAnalysesPart>("strings");
extern const ToolRow kFootprintTool = absent_tool<kAnalysesPart>("footprint");
extern const ToolRow kCoverageTool = absent_tool<kAnalysesPart>("coverage");
extern const ToolRow kMemoryTool = absent_tool<kAnalysesPart>("memory");
extern const ToolRow kIoTool = absent_tool<kAnalysesPart>("io");
extern const ToolRow kEventsTool = absent_tool<kAnalysesPart>("events");
extern const ToolRow kWatchTool = absent_tool<kAnalysesPart>("watch");
extern const ToolRow kTlbTool = absent_tool<kAnalysesPart>("tlb");
extern const ToolRow kReuseTool = absent_tool<kAnalysesPart>("reuse");
extern const ToolRow kTimelineTool = absent_tool<kAnalysesPart>("timeline");
extern const ToolRow kBbvTool = absent_tool<kAnalysesPart>("bbv");
extern const ToolRow kOperandsTool = absent_tool<kAnalysesPart>("operands");
extern const ToolRow kPowerTool = absent_tool<kAnalysesPart>("power");
extern const ToolRow kIlpTool = absent_tool<kAnalysesPart>("ilp");
extern const ToolRow kSyscallsTool = absent_tool<kAnalysesPart>("syscalls");
extern const ToolRow kCallsTool = absent_tool<kAnalysesPart>("calls");
extern const ToolRow kFuncTool = absent_tool<kAnalysesPart>("func");
extern const ToolRow kSwitchesTool = absent_tool<kAnalysesPart>("switches");

}  // namespace citcat::tools
