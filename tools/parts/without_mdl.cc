// Stand-ins for the tools of the part "mdl".

#include "tools/parts/absent_tool.h"

namespace citcat::tools {
namespace {

constexpr char kMdlPart[] = "mdl";

}  // namespace

extern const ToolRow kMdlTool = absent_tool<kMdlPart>("mdl");

}  // namespace citcat::tools
