// Stand-ins for the tools of the part "export".

#include <string>
#include <vector>

#include "tools/parts/absent_tool.h"

namespace citcat::tools {
namespace {

constexpr char kExportPart[] = "export";

}  // namespace

extern const ToolRow kDrmemtraceTool = absent_tool<kExportPart>("drmemtrace");
extern const ToolRow kChampsimTool = absent_tool<kExportPart>("champsim");
extern const ToolRow kDinTool = absent_tool<kExportPart>("din");
extern const ToolRow kLackeyTool = absent_tool<kExportPart>("lackey");
extern const ToolRow kTenetTool = absent_tool<kExportPart>("tenet");
extern const ToolRow kSimpointTool = absent_tool<kExportPart>("simpoint");
extern const ToolRow kCallgrindTool = absent_tool<kExportPart>("callgrind");
extern const ToolRow kFoldedTool = absent_tool<kExportPart>("folded");
extern const ToolRow kSpeedscopeTool = absent_tool<kExportPart>("speedscope");
extern const ToolRow kPprofTool = absent_tool<kExportPart>("pprof");
extern const ToolRow kPerfettoTool = absent_tool<kExportPart>("perfetto");
extern const ToolRow kDrcovTool = absent_tool<kExportPart>("drcov");
extern const ToolRow kLcovTool = absent_tool<kExportPart>("lcov");

/// Never called: there are no parts of a trace without its exporter.
void join_drmemtrace(const std::vector<std::string>& parts, const std::string& path);
void join_drmemtrace(const std::vector<std::string>&, const std::string&) {}

}  // namespace citcat::tools
