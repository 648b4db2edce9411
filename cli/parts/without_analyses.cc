// Stand-ins for the commands of the part "analyses".

#include "cli/parts/absent_command.h"

namespace citcat {
namespace {

constexpr char kAnalysesPart[] = "analyses";

}  // namespace

extern const Command kAnalyzeCommand = absent_command<kAnalysesPart>("analyze");
extern const Command kCountCommand = absent_command<kAnalysesPart>("count");
extern const Command kBpredCommand = absent_command<kAnalysesPart>("bpred");
extern const Command kCacheCommand = absent_command<kAnalysesPart>("cache");
extern const Command kDemoCommand = absent_command<kAnalysesPart>("demo");
extern const Command kMergeCommand = absent_command<kAnalysesPart>("merge");

}  // namespace citcat
